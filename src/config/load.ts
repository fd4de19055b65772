/** Loads a configuration directory, or records that are already parsed, into plain frozen data and a list of errors. */
import { createTranslator } from './ambassador.ts';
import type { Configuration, ConfigurationError, LimitDomain } from './configuration.ts';
import { type ConfigurationRecords, faultsOfRecords } from './configuration-records.ts';
import { readDemo } from './demo.ts';
import { readConfigurationFiles, type TextFile } from './directory.ts';
import { freezeDeep } from './freeze.ts';
import { errorsOf } from './issues.ts';
import { readLimits } from './limits.ts';
import { unfoldManifest } from './manifests.ts';
import { readRecord } from './records.ts';
import { type Compatible, type Kept, keepCompatible, keepFirst } from './uniqueness.ts';
import { readUsers } from './users.ts';
import { mapDocuments, type PlacedDocument } from './yaml-documents.ts';

/** `configuration` holds everything that can be used, `errors` says why the rest cannot, by file and line. */
export interface LoadedConfiguration {
  readonly configuration: Configuration;
  readonly errors: readonly ConfigurationError[];
  /** What is right, and yet not what a reader of the file might expect of it. */
  readonly notices: readonly ConfigurationError[];
}

export interface LoadOptions {
  /** First part of the annotation key `<gateway domain>/config`. @default 'gateway.local' */
  readonly gatewayDomain?: string | undefined;
}

/** Reads `services/`, `ratelimit/`, `users.yaml` and `demo.yaml`. It never rejects for what a file says or lacks. */
export async function loadConfiguration(directory: string, options: LoadOptions = {}): Promise<LoadedConfiguration> {
  const files = await readConfigurationFiles(directory);
  const services = mapFiles(files.services, servicesReader(options));
  const limits = mapFiles(files.limits, readLimits);
  const users = mapFiles(files.users, readUsers);
  const demo = mapFiles(files.demo, readDemo);
  return assemble({ services: services.results, limits: limits.results, users: users.results, demo: demo.results }, [
    ...files.errors,
    ...services.errors,
    ...limits.errors,
    ...users.errors,
    ...demo.errors,
  ]);
}

/** The same for values of a program; it throws nothing either. In messages the file is `<options>` and the line is the position in its list, from 1. */
export function configurationFrom(given: ConfigurationRecords, options: LoadOptions = {}): LoadedConfiguration {
  const faults = faultsOfRecords(given);
  const whole = optionDocument(given, () => 1);
  if (faults.length > 0) return assemble(nothing, errorsOf(whole, faults, undefined));
  const { records, limits = [], users, demo } = given;
  const listed = (values: readonly unknown[]) => values.map((value, index) => optionDocument(value, () => index + 1));
  const userList = users && optionDocument({ users }, (path) => (typeof path[1] === 'number' ? path[1] + 1 : 1));
  return assemble(
    {
      services: listed(records).map(servicesReader(options)),
      limits: listed(limits).map(readLimits),
      users: userList ? [readUsers(userList)] : [],
      demo: demo === undefined ? [] : [readDemo(optionDocument(demo, () => 1))],
    },
    [],
  );
}

/** What each document has come to. */
interface Parts {
  readonly services: readonly Services[];
  readonly limits: readonly ReturnType<typeof readLimits>[];
  readonly users: readonly ReturnType<typeof readUsers>[];
  readonly demo: readonly ReturnType<typeof readDemo>[];
}

const nothing: Parts = { services: [], limits: [], users: [], demo: [] };

interface Services {
  readonly results: readonly ReturnType<typeof readRecord>[];
  /** Of the manifest around the records. */
  readonly errors: readonly ConfigurationError[];
  readonly notices: readonly ConfigurationError[];
}

function servicesReader({ gatewayDomain = 'gateway.local' }: LoadOptions): (document: PlacedDocument) => Services {
  const translate = createTranslator(gatewayDomain);
  return (document) => {
    const { records, errors } = unfoldManifest(document, gatewayDomain);
    const translated = translate(records);
    return { results: translated.records.map(readRecord), errors, notices: translated.notices };
  };
}

function assemble({ services, limits, users, demo }: Parts, errors: readonly ConfigurationError[]) {
  const records = recordsOf(services.flatMap(({ results }) => results));
  const domains = limitsOf(limits);
  const configuration: Configuration = {
    mappings: records.kept.filter((record) => record.kind === 'Mapping'),
    authServices: records.kept.filter((record) => record.kind === 'AuthService'),
    rateLimitServices: records.kept.filter((record) => record.kind === 'RateLimitService'),
    versions: records.kept.filter((record) => record.kind === 'Version'),
    held: records.held,
    limits: domains.kept,
    users: users.flatMap(({ kept }) => kept),
    demo: Object.assign({}, ...demo.map((part) => part.demo)),
  };
  const found = [...services, records, domains, ...users, ...demo].flatMap((part) => part.errors);
  const notices = services.flatMap((part) => part.notices);
  return freezeDeep({ configuration, errors: [...errors, ...found].sort(byPlace), notices: notices.sort(byPlace) });
}

function recordsOf(results: Services['results']): Compatible {
  const { kept, errors, held } = keepCompatible(results.flatMap((result) => (result.ok ? [result.record] : [])));
  const refused = results.filter((result) => !result.ok);
  return {
    kept,
    errors: [...refused.flatMap((result) => result.errors), ...errors],
    held: [...refused.flatMap((result) => result.held), ...held],
  };
}

function limitsOf(results: Parts['limits']): Kept<LimitDomain> {
  const { kept, errors } = keepFirst(
    results.flatMap((result) => (result.ok ? [result.domain] : [])),
    ({ domain }) => domain,
    (later, first) => ({
      source: later.source,
      record: `domain ${later.domain}`,
      message: 'there is already a domain of this name',
      other: first.source,
      remedy: 'Put the descriptors of both into one of them.',
    }),
  );
  return { kept, errors: [...results.flatMap((result) => (result.ok ? [] : result.errors)), ...errors] };
}

/** What `read` makes of each document of the files, and an error for each document that does not parse. */
function mapFiles<T>(files: readonly TextFile[], read: (document: PlacedDocument) => T) {
  const parts = files.map(({ file, text }) => mapDocuments(text, { file, lineOf: (line) => line }, read));
  return { results: parts.flatMap(({ results }) => results), errors: parts.flatMap(({ errors }) => errors) };
}

function optionDocument(value: unknown, lineAt: PlacedDocument['lineAt']): PlacedDocument {
  const file = '<options>';
  return { value, file, lineAt, placeWithin: (path, record) => ({ file, record, lineOf: () => lineAt(path) }) };
}

function byPlace(a: ConfigurationError, b: ConfigurationError): number {
  if (a.source.file !== b.source.file) return a.source.file < b.source.file ? -1 : 1;
  return a.source.line - b.source.line;
}
