/** Handles configurations with errors: decides whether the process can start, and what a reload applies. */
import { join, relative, resolve } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { type ConfigurationError, fileError, formatErrors, type Source } from './errors.ts';
import {
  type Configuration,
  type ConfigurationRecords,
  configurationFrom,
  type LoadedConfiguration,
  loadDirectory,
} from './load.ts';
import { type BlockedMatch, blockedByMapping, isOpen, keysOf } from './records/blocked.ts';
import { fullName, keepCompatible, recordError } from './records/conflicts.ts';
import type { Mapping } from './records/mapping.ts';
import { matchKey } from './records/match.ts';
import { type GatewayRecord, kindIn, recordLists } from './records/record.ts';
import type { Settings } from './settings/settings.ts';
import { type ExposureSettings, exposedDemoUsers, openHost, type User } from './users.ts';
import { flatMapInParts, forEachInParts, mapInParts, type Work } from './work.ts';

/**
 * Loads `config`, or the directory in the settings, for the start of a process. Rejects with an Error that lists all
 * errors by file and line, or the demo users that a server open to the network must not have. A broken Mapping in a
 * directory prevents the start only if it is unknown which requests it guarded. Otherwise it is in `errors`.
 */
export async function requireConfiguration(
  config: string | ConfigurationRecords | undefined,
  settings: Settings,
): Promise<LoadedConfiguration> {
  const loaded =
    typeof config === 'object'
      ? configurationFrom(config, settings)
      : await loadDirectory(config ?? settings.configDir, settings);
  const isFatal = typeof config === 'object' || loaded.errors.some(({ isContained }) => isContained !== true);
  if (loaded.errors.length > 0 && isFatal) {
    const count = loaded.errors.length === 1 ? 'an error' : `${loaded.errors.length} errors`;
    throw new Error(`the configuration has ${count}:\n${formatErrors(loaded.errors, resolve('.'))}`);
  }
  const exposed = exposedDemoUsers(settings, loaded.configuration.users);
  if (exposed.length > 0) {
    throw new Error(
      `${exposureMessage(settings, exposed)}: set other passwords (frontdesk hash-password), or ALLOW_DEMO_USERS=true`,
    );
  }
  return loaded;
}

function exposureMessage(settings: ExposureSettings, exposed: readonly string[]): string {
  const subject = exposed.length === 1 ? `password of ${exposed[0]} is` : `passwords of ${exposed.join(' and ')} are`;
  return `the demo ${subject} published, and ${openHost(settings)} is open to the network`;
}

/** The rules for a reload that do not depend on the files. */
export interface ReloadPolicy {
  readonly directory: string;
  readonly settings: ExposureSettings;
  /** Returns a `recordError` for each valid record that this process cannot serve. */
  readonly findUnservable: (configuration: Configuration) => Work<readonly ConfigurationError[]>;
}

/**
 * Returns the valid records of a reload, and the previous versions of the others. A broken record or user keeps its
 * previous version, and so do all records of an unreadable file. Broken records without a previous version are dropped.
 * Limits are replaced as a whole or not at all.
 *
 * No request becomes open by mistake: AuthServices, RateLimitServices and guarded Mappings that disappeared are kept
 * while a broken record may be one of them under another name or in another file. A changed Mapping counts as broken if
 * it could be open for requests that a broken record protects.
 */
export function* keepLastGood(
  loaded: LoadedConfiguration,
  current: Configuration,
  { directory, settings, findUnservable }: ReloadPolicy,
): Work<LoadedConfiguration> {
  const valid = yield* fillGaps(withoutExposedUsers(loaded, directory, settings), current, directory);
  const servable = yield* withoutBroken(valid, yield* findUnservable(valid.configuration), current, directory);
  const opened = yield* findOpened(servable, loaded.configuration, current, directory);
  return yield* withoutBroken(servable, opened, current, directory);
}

/** Replaces the records that `found` names by their previous versions. */
function* withoutBroken(
  loaded: LoadedConfiguration,
  found: readonly ConfigurationError[],
  current: Configuration,
  directory: string,
): Work<LoadedConfiguration> {
  if (found.length === 0) return loaded;
  const configuration = yield* withoutRecords(loaded.configuration, found);
  return yield* fillGaps({ ...loaded, configuration, errors: [...loaded.errors, ...found] }, current, directory);
}

/**
 * Returns an error for each changed Mapping with which requests could be open that a broken record protects: all requests
 * if that may be the only AuthService, unknown ones if it may be a Mapping.
 */
function* findOpened(
  { configuration, errors }: LoadedConfiguration,
  inFiles: Configuration,
  current: Configuration,
  directory: string,
): Work<readonly ConfigurationError[]> {
  const inServices = errors.filter(({ source }) => isPartOf('services', source, directory));
  const lacksAuth = configuration.authServices.length === 0;
  if (inServices.length === 0) return [];
  if (lacksAuth && !inServices.some((error) => mayBe('AuthService', error))) return [];
  const hidesGuard = inServices.some(hidesMapping);
  const read = new Set(inFiles.mappings);
  const opens = opensUnguarded(
    configuration.mappings.filter((mapping) => !read.has(mapping)),
    inServices,
  );
  if (!lacksAuth && !opens) return [];
  const before = new Map(current.mappings.map((mapping) => [mapping.name, mapping]));
  const leavesRequests = (mapping: Mapping, last = mapping) =>
    opens && !isOpen(last) && matchKey(last) !== matchKey(mapping);
  return yield* flatMapInParts(configuration.mappings, (mapping) => {
    const last = before.get(mapping.name);
    const isChanged = () => !isDeepStrictEqual({ ...last, source: mapping.source }, mapping);
    const opensOwn = (isOpen(mapping) ? hidesGuard : lacksAuth) && isChanged();
    if (!opensOwn && !leavesRequests(mapping, last)) return [];
    const message = 'with this change, requests could be open that a broken record protects';
    return [recordError(mapping, { message, remedy: 'Correct the other errors in services.' })];
  });
}

/**
 * Whether requests could be open by mistake when a guarded Mapping no longer matches them. `staying`: the mappings whose
 * previous version stays. An open one may be guarded in its broken version, so its guarded exceptions must stay too.
 */
function opensUnguarded(staying: readonly Mapping[], errors: readonly ConfigurationError[]): boolean {
  return errors.some(hidesMapping) || staying.some(isOpen);
}

/** Whether the error may concern a record of this kind. Some errors hide which records there are. */
function mayBe(kind: GatewayRecord['kind'], { record = '' }: ConfigurationError): boolean {
  const named = kindIn(record);
  return named === undefined || named === kind;
}

/** Whether the error may concern a Mapping whose requests are unknown. */
function hidesMapping(error: ConfigurationError): boolean {
  return error.isContained !== true && mayBe('Mapping', error);
}

/** Adds the current versions of what is missing because of an error. */
function* fillGaps(loaded: LoadedConfiguration, current: Configuration, directory: string): Work<LoadedConfiguration> {
  const { configuration, errors, notices } = loaded;
  const { demo } = current;
  if (errors.length === 0)
    return Object.freeze({ ...loaded, configuration: Object.freeze({ ...configuration, demo }) });
  const errorsIn = (part: string) => errors.filter(({ source }) => isPartOf(part, source, directory));
  const reasonToKeep = yield* findReasons(configuration, current, errors, errorsIn('services'));
  const missing = yield* flatMapInParts(recordsOf(current), (record) =>
    reasonToKeep(record, isGuard(record)) ? [record] : [],
  );
  const stillBlocked = current.blocked.filter((match) => reasonToKeep(mappingOf(match), match.isGuard));
  const renamed = [...missing, ...stillBlocked.map(mappingOf)].filter((record) => reasonToKeep(record) === 'renamed');
  const { kept, errors: clashes, blocked } = yield* keepCompatible([...recordsOf(configuration), ...missing], true);
  const allBlocked = [...configuration.blocked, ...blocked, ...stillBlocked];
  return Object.freeze({
    configuration: Object.freeze({
      ...configuration,
      ...(yield* recordLists(kept)),
      limits: errorsIn('ratelimit').length > 0 ? current.limits : configuration.limits,
      users: usersOf(configuration.users, current.users, errorsIn('users.yaml')),
      demo,
      blocked: Object.freeze(yield* withoutServed(allBlocked, kept, current)),
      possiblyRenamed: Object.freeze([...configuration.possiblyRenamed, ...renamed.map(fullName)]),
    }),
    errors: missing.length === 0 ? errors : [...errors, ...clashes],
    notices,
  });
}

type Named = Pick<GatewayRecord, 'kind' | 'name' | 'source'>;

/** Why a current record that the new configuration lacks stays in use. */
type Reason =
  /** An error names it. */
  | 'broken'
  /** An unknown record of its file is broken, and may be this one under another name. */
  | 'renamed'
  /** Its file or directory has an error that concerns no single record. */
  | 'unreadable'
  /** Requests could be open without it, because a record of any file is broken. */
  | 'guard';

/**
 * Returns a function that returns the reason to keep a current record. Undefined for a record that the new configuration
 * has, or from which it was removed without a mistake. `isGuard`: whether requests could be open without it.
 */
function* findReasons(
  configuration: Configuration,
  current: Configuration,
  errors: readonly ConfigurationError[],
  recordErrors: readonly ConfigurationError[],
): Work<(record: Named, isGuard?: boolean) => Reason | undefined> {
  const present = new Set(yield* mapInParts(recordsOf(configuration), fullName));
  const known = new Set(yield* mapInParts(recordsOf(current), fullName));
  for (const match of current.blocked) known.add(fullName(mappingOf(match)));
  const renamedBefore = new Set(current.possiblyRenamed);
  const broken = new Set(errors.map(({ record }) => record));
  const isBesideUnknown = besideErrors(errors.filter(({ record }) => record !== undefined && !known.has(record)));
  const isUnreadable = besideErrors(errors.filter(({ record }) => record === undefined));
  const isBesideError = besideErrors(errors);
  // On the next reload the unknown name is known, which hides the renaming, so it counts until the file has no errors.
  const mayBeRenamed = (record: Named) =>
    isBesideUnknown(record) || (renamedBefore.has(fullName(record)) && isBesideError(record));
  const isPresent = (record: Named) => present.has(fullName(record));
  function mistakeIn(record: Named): Reason | undefined {
    if (broken.has(fullName(record))) return 'broken';
    if (mayBeRenamed(record)) return 'renamed';
    return isUnreadable(record) ? 'unreadable' : undefined;
  }
  const staying = yield* flatMapInParts(current.mappings, (mapping) =>
    !isPresent(mapping) && mistakeIn(mapping) ? [mapping] : [],
  );
  const hidesService = recordErrors.some((error) => mayBe('AuthService', error) || mayBe('RateLimitService', error));
  const opens = current.authServices.length > 0 && opensUnguarded(staying, recordErrors);
  return function reasonToKeep(record, isGuard = false) {
    if (isPresent(record)) return undefined;
    const mayOpen = record.kind === 'Mapping' ? opens : hidesService;
    return mistakeIn(record) ?? (isGuard && mayOpen ? 'guard' : undefined);
  };
}

/** Without such a record, requests could be open. */
function isGuard(record: GatewayRecord): boolean {
  return record.kind === 'Mapping' ? !isOpen(record) : record.kind !== 'Version';
}

/** Returns a function that reports whether a record is in a file, or in a directory, with one of these errors. */
function besideErrors(errors: readonly ConfigurationError[]): (record: Named) => boolean {
  // An error of the directory has its name as it was given, such as `./config` or `config/`, unlike those of records.
  const places = [...new Set(errors.map(({ source }) => join(source.file, '.')))];
  return ({ source: { file } }) =>
    places.some((place) => place === '.' || file === place || file.startsWith(`${place}/`));
}

/**
 * Returns the blocks of requests that no kept record serves. If a record was broken before and still is, returns only
 * its first block, which is from the new files.
 */
function* withoutServed(
  blocked: readonly BlockedMatch[],
  kept: readonly GatewayRecord[],
  current: Configuration,
): Work<readonly BlockedMatch[]> {
  const stay = yield* keysOf(kept.filter((record) => record.kind === 'Mapping'));
  const before = yield* keysOf(current.mappings);
  const blockedBefore = yield* keysOf(current.blocked);
  const seen = new Set<string>();
  return blocked.filter((match) => {
    const key = matchKey(match);
    // A new broken record does not block the requests of a mapping that was served and stays.
    const isServed = stay.has(key) && before.has(key) && !blockedBefore.has(key);
    const isFirst = seen.size < seen.add(`${key} ${match.name}`).size;
    return isFirst && !isServed;
  });
}

/** Reports whether an error affects a part of the directory. An error of the directory itself affects all parts. */
function isPartOf(part: string, { file }: Source, directory: string): boolean {
  const [first = ''] = relative(directory, file).split(/[/\\]/);
  return first === part || first === '';
}

/** Returns the configuration without the records that `errors` name. */
function* withoutRecords(configuration: Configuration, errors: readonly ConfigurationError[]): Work<Configuration> {
  const named = new Set(errors.map(({ record }) => record));
  const good: GatewayRecord[] = [];
  const blocked = [...configuration.blocked];
  yield* forEachInParts(recordsOf(configuration), (record) => {
    if (!named.has(fullName(record))) good.push(record);
    else if (record.kind === 'Mapping') blocked.push(...blockedByMapping(record));
  });
  return { ...configuration, ...(yield* recordLists(good)), blocked };
}

function recordsOf({ mappings, authServices, rateLimitServices, versions }: Configuration): GatewayRecord[] {
  return [...mappings, ...authServices, ...rateLimitServices, ...versions];
}

function mappingOf({ name, source }: BlockedMatch): Named {
  return { kind: 'Mapping', name, source };
}

/** Keeps the previous version of broken users. A removed user is removed even if other users are broken. */
function usersOf(users: readonly User[], current: readonly User[], errors: readonly ConfigurationError[]): User[] {
  const names = new Set(users.map(({ name }) => name));
  const isBroken = ({ name }: User) =>
    errors.some(({ record }) => record === `User ${name}` || record?.startsWith('User') !== true);
  return [...users, ...current.filter((user) => !names.has(user.name) && isBroken(user))];
}

/** Treats demo users like broken ones if the server is open to the network. */
function withoutExposedUsers(
  loaded: LoadedConfiguration,
  directory: string,
  settings: ReloadPolicy['settings'],
): LoadedConfiguration {
  const exposed = exposedDemoUsers(settings, loaded.configuration.users);
  if (exposed.length === 0) return loaded;
  const remedy = 'Set another password (frontdesk hash-password), or ALLOW_DEMO_USERS=true.';
  const errors = exposed.map((name) => ({
    ...fileError(`${directory}/users.yaml`, exposureMessage(settings, [name]), remedy, 1),
    record: `User ${name}`,
  }));
  const users = loaded.configuration.users.filter(({ name }) => !exposed.includes(name));
  return { ...loaded, configuration: { ...loaded.configuration, users }, errors: [...loaded.errors, ...errors] };
}
