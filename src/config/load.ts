/** Loads a directory or a program's records: reads each file separately, then applies the rules between files. */
import { hash } from 'node:crypto';
import { relative } from 'node:path';
import * as z from 'zod';
import type { AddressRecord } from './ambassador/addresses.ts';
import { differencesNotice, translateRecords } from './ambassador/translate.ts';
import { type ConfigurationFile, readDirectory } from './directory.ts';
import {
  type ConfigDocument,
  type ConfigurationError,
  errorsOf,
  faultsOf,
  fileError,
  type PlacedFault,
  typeName,
} from './errors.ts';
import { strict } from './fields/field.ts';
import { described } from './fields/json-schema.ts';
import { singleLine } from './fields/values.ts';
import { type LimitDomain, type LimitDomainInput, limitTextKeys, mergeDomains, readLimits } from './limits/domains.ts';
import { unfoldManifest } from './manifest.ts';
import { pathBypassNotices } from './path-bypasses.ts';
import { findConflicts, type Kept } from './records/conflicts.ts';
import type { RecordInput } from './records/input.ts';
import { type GatewayRecord, type RecordLists, readRecord, recordLists } from './records/record.ts';
import { gatewaySettings } from './settings/gateway-settings.ts';
import { readUpstreamFiles, type UpstreamFile } from './tls/upstream-files.ts';
import { nextTurn } from './turns.ts';
import { readUsers, type User, type UserInput, withoutWrongUsers } from './users.ts';
import { encodingErrorOf, readYaml } from './yaml.ts';

/** Everything that a directory or a program configures, as plain frozen data. */
export interface Configuration extends RecordLists {
  /** Which clients Modules of Ambassador let come to the gateway. All of them must. */
  readonly addresses: readonly AddressRecord[];
  readonly limits: readonly LimitDomain[];
  readonly users: readonly User[];
  readonly demo: DemoTables;
  /** The PEM files that records name, with their contents. */
  readonly upstreamFiles: readonly UpstreamFile[];
}

/** The rows of demo.yaml by table. They fill an empty database, whose tables and columns the demo defines. */
export type DemoTables = Readonly<Record<string, readonly Readonly<Record<string, DemoCell>>[]>>;

export type DemoCell = string | number | boolean | null;

export interface LoadedConfiguration {
  /**
   * Has no records, limits and demo data if anything is wrong with any of them, so that no part of them is used without
   * the rest. Never has a user whose entry is wrong.
   */
  readonly configuration: Configuration;
  /** By file and line. */
  readonly errors: readonly ConfigurationError[];
  /** Reports settings and records that are valid but may not do what their author expects. */
  readonly notices: readonly ConfigurationError[];
  /** The files of the directory, so that the next reading only parses those that changed. */
  readonly files?: readonly FilePart[];
  /** The PEM files that records name, also if the records are refused. */
  readonly upstreamFiles?: readonly UpstreamFile[];
}

/** The contents of one file. Nothing in it depends on other files. */
export interface FilePart {
  readonly file: string;
  /** The SHA-256 digest of the file's bytes. */
  readonly digest: string;
  readonly records: readonly GatewayRecord[];
  readonly addresses: readonly AddressRecord[];
  readonly limits: readonly LimitDomain[];
  readonly users: readonly User[];
  readonly demo: DemoTables;
  readonly errors: readonly ConfigurationError[];
  readonly notices: readonly ConfigurationError[];
  /** A notice about how frontdesk reads Ambassador's records, if the file has any. It appears once for all files. */
  readonly differences: readonly ConfigurationError[];
}

export interface LoadOptions {
  /** The first part of the annotation key `<gateway domain>/config`. @default 'gateway.local' */
  readonly gatewayDomain?: string | undefined;
  /** The setting of this name. @default true */
  readonly strictPaths?: boolean | undefined;
}

/** Reads `services/`, `ratelimit/`, `users.yaml` and `demo.yaml`. Never rejects because of missing or invalid files. */
export async function loadConfiguration(directory: string, options: LoadOptions = {}): Promise<LoadedConfiguration> {
  return loadDirectory(directory, options, 'pass another directory');
}

/** Like `loadConfiguration`. `useAnother` says in errors how to choose another directory. @default CONFIG_DIR */
export async function loadDirectory(
  directory: string,
  options: LoadOptions,
  useAnother?: string,
): Promise<LoadedConfiguration> {
  const reading = await readFiles(directory, options, new Map(), useAnother);
  return assembleFiles(reading, new Map(), options);
}

/** The current contents of a directory. */
export interface Reading {
  readonly directory: string;
  /** All files, sorted by name. */
  readonly files: readonly Pick<FilePart, 'file' | 'digest'>[];
  /** The contents of files whose digest was not known. */
  readonly changed: readonly FilePart[];
  /** Errors of the directory, and of files that cannot be read. */
  readonly errors: readonly ConfigurationError[];
  /** Notices about the directory itself. */
  readonly notices: readonly ConfigurationError[];
}

/** Reads a directory. Does not parse files whose digest is in `known`. */
export async function readFiles(
  directory: string,
  options: LoadOptions,
  known: ReadonlyMap<string, string>,
  useAnother?: string,
): Promise<Reading> {
  const { files, errors, notices } = await readDirectory(directory, useAnother);
  const digests = files.map(({ file, bytes }) => ({ file, digest: hash('sha256', bytes, 'base64') }));
  const changed = files.flatMap((one, index) => {
    const digest = digests[index]?.digest ?? '';
    if (known.get(one.file) === digest) return [];
    const part = partOf(one, options);
    const isUnwritten = one.bytes.length === 0 && known.size > 0;
    return [{ ...part, ...(isUnwritten && { errors: [emptyError(one.file)], notices: [] }), digest }];
  });
  return { directory, files: digests, changed, errors, notices };
}

/** An error on a reload, when a program may be about to write the file, as in `generate > auth.yaml`; else a notice. */
function emptyError(file: string): ConfigurationError {
  return fileError(file, 'the file is empty', 'Write it, or remove it. A file without records may contain a comment.');
}

/**
 * Combines the changed files of a reading with the known parts, whose records remain the same objects. Requests can run
 * in between. `upstreamFiles` are those of the last reading.
 */
export async function assembleFiles(
  reading: Reading,
  known: ReadonlyMap<string, FilePart>,
  options: LoadOptions,
  upstreamFiles: readonly UpstreamFile[] = [],
): Promise<LoadedConfiguration> {
  const changed = new Map(reading.changed.map((part) => [part.file, part]));
  const files = reading.files.flatMap(({ file }) => changed.get(file) ?? known.get(file) ?? []);
  const conflicts = conflictsBetween(files);
  await nextTurn();
  const loaded = assemble(files, conflicts, { ...reading, upstreamFiles }, options);
  return freezeDeep({ ...loaded, files });
}

/** Plain objects in the same format as the files, with snake_case names: records, limit domains, users, demo tables. */
export interface ConfigurationRecords {
  /** What `services/*.yaml` contains. */
  readonly records: readonly RecordInput[];
  /** What `ratelimit/*.yaml` contains. */
  readonly limits?: readonly LimitDomainInput[] | undefined;
  /** What `users.yaml` lists. */
  readonly users?: readonly UserInput[] | undefined;
  /** What `demo.yaml` contains. */
  readonly demo?: DemoTables | undefined;
}

/**
 * Like `loadConfiguration`, for values that a program passes. Never throws. Errors show `<options>` as the file and the
 * position in the list, starting at 1, as the line.
 */
export function configurationFrom(given: ConfigurationRecords, options: LoadOptions = {}): LoadedConfiguration {
  const faults = faultsOfRecords(given);
  if (faults.length > 0)
    return freezeDeep(assemble([], [], { ...noReading, errors: errorsOf(optionDocument(given), faults, undefined) }));
  const { records, limits = [], users, demo } = given;
  const part = emptyPart(optionsFile);
  for (const document of listed(records)) addRecords(part, document, options);
  for (const document of listed(limits)) addKept(part, part.limits, readLimits(document));
  const lineOfUser = ([, index]: readonly PropertyKey[]) => (typeof index === 'number' ? index + 1 : 1);
  if (users) addKept(part, part.users, readUsers(optionDocument({ users }, lineOfUser)));
  if (demo !== undefined) addDemo(part, optionDocument(demo));
  return freezeDeep(assemble([part], conflictsBetween([part]), noReading, options));
}

const optionsFile = '<options>';
const noReading = { directory: optionsFile, errors: [], notices: [] };

function listed(values: readonly unknown[]): readonly ConfigDocument[] {
  return values.map((value, index) => optionDocument(value, () => index + 1));
}

function optionDocument(value: unknown, lineAt: ConfigDocument['lineAt'] = () => 1): ConfigDocument {
  const file = optionsFile;
  return { value, file, lineAt, placeWithin: (path, record) => ({ file, record, lineOf: () => lineAt(path) }) };
}

const anyList = z.array(z.unknown());
const recordsSchema = strict({
  records: anyList,
  limits: anyList.optional(),
  users: anyList.optional(),
  demo: z.unknown().optional(),
});
const recordsExamples = {
  records: '[{ apiVersion: gateway/v1, kind: Mapping, … }]; [] for none',
  limits: '[{ domain: … }]',
  users: '[{ name: … }]',
};

/** Checks the shape of the records, because a program in JavaScript may pass anything. */
function faultsOfRecords(value: unknown): readonly PlacedFault[] {
  if (typeName(value) !== 'a map') {
    const remedy =
      'For example: { records: [{ apiVersion: gateway/v1, kind: Mapping, … }] }, optionally with limits, users and demo';
    return [{ path: [], message: `the configuration must be a map, not ${typeName(value)}`, remedy }];
  }
  const { error } = recordsSchema.safeParse(value);
  return error === undefined ? [] : faultsOf(error, value, recordsExamples);
}

/** A FilePart under construction. */
type Draft = { -readonly [P in keyof FilePart]: FilePart[P] extends readonly (infer Item)[] ? Item[] : FilePart[P] };

export function emptyPart(file: string): Draft {
  const contents = { records: [], addresses: [], limits: [], users: [], demo: {} };
  return { file, digest: '', ...contents, errors: [], notices: [], differences: [] };
}

function partOf({ kind, file, bytes }: ConfigurationFile, options: LoadOptions): FilePart {
  const part = emptyPart(file);
  const add = {
    services: (document: ConfigDocument) => addRecords(part, document, options),
    limits: (document: ConfigDocument) => addKept(part, part.limits, readLimits(document)),
    users: (document: ConfigDocument) => addKept(part, part.users, readUsers(document, part.users)),
    demo: (document: ConfigDocument) => addDemo(part, document),
  }[kind];
  const textKeys = kind === 'limits' ? limitTextKeys : [];
  const encodingError = encodingErrorOf(file, bytes);
  const text = bytes.toString('utf8');
  const errors = encodingError
    ? [encodingError]
    : readYaml(text, { file, lineOf: (line) => line }, add, textKeys).errors;
  part.errors.unshift(...errors);
  if (kind === 'limits' && part.errors.length + part.limits.length === 0) part.errors.push(noDomain(file));
  else if (text.trim() === '') part.notices.push(emptyError(file));
  return part;
}

/** Rejects a file without a domain, like envoyproxy/ratelimit: a truncated file would remove its limits. */
function noDomain(file: string): ConfigurationError {
  const remedy = 'Write the limits of a domain, for example domain: gateway, or remove the file.';
  return fileError(file, 'there is no domain in this file', remedy, 1);
}

function addRecords(
  part: Draft,
  document: ConfigDocument,
  { gatewayDomain = gatewaySettings.gatewayDomain.default }: LoadOptions,
): void {
  const { records, errors } = unfoldManifest(document, gatewayDomain);
  const translated = translateRecords(records, gatewayDomain);
  part.errors.push(...errors, ...translated.errors);
  part.notices.push(...translated.notices);
  part.addresses.push(...translated.addresses);
  if (translated.first !== undefined && part.differences.length === 0)
    part.differences.push(...differencesNotice(translated.first));
  for (const result of translated.records.map(readRecord)) {
    if (result.ok) part.records.push(result.record);
    else part.errors.push(...result.errors);
  }
}

function addKept<T>(part: Draft, list: T[], { kept, errors }: Kept<T>): void {
  list.push(...kept);
  part.errors.push(...errors);
}

const isCell = (value: unknown) => value === null || ['string', 'number', 'boolean'].includes(typeof value);
const cell = described(z.custom<DemoCell>(isCell, 'must be a string, a number, true, false or null'), {
  type: ['string', 'number', 'boolean', 'null'],
});
export const demoSchema = z.record(singleLine(), z.array(z.record(singleLine(), cell))) satisfies z.ZodType<DemoTables>;

function addDemo(part: Draft, document: ConfigDocument): void {
  const read = demoSchema.safeParse(document.value);
  if (read.success) part.demo = { ...part.demo, ...read.data };
  else part.errors.push(...errorsOf(document, faultsOf(read.error, document.value, {}), undefined));
}

function conflictsBetween(parts: readonly FilePart[]): readonly ConfigurationError[] {
  return findConflicts(parts.flatMap((part) => part.records));
}

/** Combines the parts of all files. `conflicts` are those between them, and `reading` has what belongs to no file. */
function assemble(
  parts: readonly FilePart[],
  conflicts: readonly ConfigurationError[],
  reading: Omit<Reading, 'files' | 'changed'> & Pick<LoadedConfiguration, 'upstreamFiles'>,
  { strictPaths = gatewaySettings.strictPaths.default }: LoadOptions = {},
): LoadedConfiguration {
  const domains = mergeDomains(parts.flatMap((part) => part.limits));
  const records = parts.flatMap((part) => part.records);
  // Without a directory, files are relative to the working directory.
  const base = reading.directory === optionsFile ? '' : reading.directory;
  const upstream = readUpstreamFiles(records, base, reading.upstreamFiles ?? []);
  const ofParts = parts.flatMap((part) => part.errors);
  const errors = [...reading.errors, ...ofParts, ...conflicts, ...domains.errors, ...upstream.errors];
  const isWhole = errors.every((error) => isOfUsers(error, reading.directory));
  const lists = recordLists(isWhole ? records : []);
  const configuration: Configuration = {
    ...lists,
    addresses: isWhole ? parts.flatMap((part) => part.addresses) : [],
    limits: isWhole ? domains.kept : [],
    users: withoutWrongUsers(
      parts.flatMap((part) => part.users),
      errors,
    ),
    demo: isWhole ? Object.assign({}, ...parts.map((part) => part.demo)) : {},
    upstreamFiles: isWhole ? upstream.found : [],
  };
  // This notice appears once, for the first file with Ambassador's records.
  const [differences = []] = parts.map((part) => part.differences).filter(({ length }) => length > 0);
  const bypasses = pathBypassNotices(lists, strictPaths);
  const ownNotices = parts.flatMap((part) => part.notices);
  const notices = [...reading.notices, ...differences, ...bypasses, ...ownNotices];
  return {
    configuration,
    errors: errors.sort(byPlace),
    notices: notices.sort(byPlace),
    upstreamFiles: upstream.found,
  };
}

/** Whether an error concerns users.yaml in this directory. */
export function isOfUsers({ source }: ConfigurationError, directory: string): boolean {
  return relative(directory, source.file) === 'users.yaml';
}

function byPlace(a: ConfigurationError, b: ConfigurationError): number {
  if (a.source.file !== b.source.file) return a.source.file < b.source.file ? -1 : 1;
  return a.source.line - b.source.line;
}

/** Freezes a value, and all maps and lists in it, and returns the value. */
export function freezeDeep<T>(root: T): T {
  for (const collection of collectionsIn(root)) Object.freeze(collection);
  return root;
}

/** Yields maps and lists that are not frozen. A frozen one contains only frozen ones. */
function* collectionsIn(root: unknown): Generator<object> {
  const waiting = [root];
  while (waiting.length > 0) {
    const value = waiting.pop();
    if (typeof value !== 'object' || value === null || Object.isFrozen(value)) continue;
    for (const inner of Object.values(value)) waiting.push(inner);
    yield value;
  }
}
