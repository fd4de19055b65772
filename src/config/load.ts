/** Loads a configuration directory, or records that are already parsed, into plain frozen data and a list of errors. */
import type { Configuration, ConfigurationError, LimitDomain } from './configuration.ts';
import { readDemo } from './demo.ts';
import { readConfigurationFiles, type TextFile } from './directory.ts';
import { freezeDeep } from './freeze.ts';
import { readLimits } from './limits.ts';
import { unfoldManifests } from './manifests.ts';
import { type GatewayRecord, readRecord } from './records.ts';
import { type Kept, keepCompatible, keepFirst } from './uniqueness.ts';
import { readUsers } from './users.ts';
import { type PlacedDocument, readDocuments } from './yaml-documents.ts';

/** `configuration` holds everything that can be used, `errors` says why the rest cannot, by file and line. */
export interface LoadedConfiguration {
  readonly configuration: Configuration;
  readonly errors: readonly ConfigurationError[];
}

export interface LoadOptions {
  /** First part of the annotation key `<gateway domain>/config`. @default 'gateway.local' */
  readonly gatewayDomain?: string | undefined;
}

/** Plain objects in the shape of the files, snake_case and all: gateway records, limit domains, users, demo tables. */
export interface ConfigurationRecords {
  readonly records: readonly unknown[];
  readonly limits?: readonly unknown[] | undefined;
  readonly users?: readonly unknown[] | undefined;
  readonly demo?: unknown;
}

/** Reads `services/`, `ratelimit/`, `users.yaml` and `demo.yaml`. It never rejects for what a file says or lacks. */
export async function loadConfiguration(directory: string, options: LoadOptions = {}): Promise<LoadedConfiguration> {
  const files = await readConfigurationFiles(directory);
  const [services, limits, users, demo] = [
    documentsOf(files.services),
    documentsOf(files.limits),
    documentsOf(files.users),
    documentsOf(files.demo),
  ];
  return assemble(
    { services: services.kept, limits: limits.kept, users: users.kept, demo: demo.kept },
    [...files.errors, ...services.errors, ...limits.errors, ...users.errors, ...demo.errors],
    options,
  );
}

/** The same for values of a program. In messages the file is `<options>` and the line is the position in its list, from 1. */
export function configurationFrom(
  { records, limits = [], users, demo }: ConfigurationRecords,
  options: LoadOptions = {},
): LoadedConfiguration {
  const listed = (values: readonly unknown[]) => values.map((value, index) => optionDocument(value, () => index + 1));
  const userList = users && optionDocument({ users }, (path) => (typeof path[1] === 'number' ? path[1] + 1 : 1));
  const tables = demo === undefined ? [] : [optionDocument(demo, () => 1)];
  return assemble(
    { services: listed(records), limits: listed(limits), users: userList ? [userList] : [], demo: tables },
    [],
    options,
  );
}

interface Documents {
  readonly services: readonly PlacedDocument[];
  readonly limits: readonly PlacedDocument[];
  readonly users: readonly PlacedDocument[];
  readonly demo: readonly PlacedDocument[];
}

function assemble(
  documents: Documents,
  errors: readonly ConfigurationError[],
  { gatewayDomain = 'gateway.local' }: LoadOptions,
): LoadedConfiguration {
  const manifests = unfoldManifests(documents.services, gatewayDomain);
  const records = recordsOf(manifests.records);
  const limits = limitsOf(documents.limits);
  const users = documents.users.map(readUsers);
  const demo = documents.demo.map(readDemo);
  const configuration: Configuration = {
    mappings: records.kept.filter((record) => record.kind === 'Mapping'),
    authServices: records.kept.filter((record) => record.kind === 'AuthService'),
    rateLimitServices: records.kept.filter((record) => record.kind === 'RateLimitService'),
    limits: limits.kept,
    users: users.flatMap(({ kept }) => kept),
    demo: Object.assign({}, ...demo.map((part) => part.demo)),
  };
  const found = [manifests, records, limits, ...users, ...demo].flatMap((part) => part.errors);
  return freezeDeep({ configuration, errors: [...errors, ...found].sort(byPlace) });
}

function recordsOf(documents: readonly PlacedDocument[]): Kept<GatewayRecord> {
  const results = documents.map(readRecord);
  const { kept, errors } = keepCompatible(results.flatMap((result) => (result.ok ? [result.record] : [])));
  return { kept, errors: [...results.flatMap((result) => (result.ok ? [] : result.errors)), ...errors] };
}

function limitsOf(documents: readonly PlacedDocument[]): Kept<LimitDomain> {
  const results = documents.map(readLimits);
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

function documentsOf(files: readonly TextFile[]): Kept<PlacedDocument> {
  const parts = files.map(({ file, text }) => readDocuments(text, { file, lineOf: (line) => line }));
  return { kept: parts.flatMap(({ documents }) => documents), errors: parts.flatMap(({ errors }) => errors) };
}

function optionDocument(value: unknown, lineAt: PlacedDocument['lineAt']): PlacedDocument {
  const file = '<options>';
  return { value, file, lineAt, placeWithin: (path, record) => ({ file, record, lineOf: () => lineAt(path) }) };
}

function byPlace(a: ConfigurationError, b: ConfigurationError): number {
  if (a.source.file !== b.source.file) return a.source.file < b.source.file ? -1 : 1;
  return a.source.line - b.source.line;
}
