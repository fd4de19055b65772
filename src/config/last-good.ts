/** Handles configurations with errors: decides whether the process can start, and what a reload applies. */
import { join, relative, resolve } from 'node:path';
import { type ConfigurationError, fileError, formatErrors, type Source } from './errors.ts';
import {
  type Configuration,
  type ConfigurationRecords,
  configurationFrom,
  type LoadedConfiguration,
  loadDirectory,
} from './load.ts';
import { type BlockedMatch, blockedByMapping, keysOf } from './records/blocked.ts';
import { fullName, keepCompatible } from './records/conflicts.ts';
import { matchKey } from './records/match.ts';
import { type GatewayRecord, recordLists } from './records/record.ts';
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
      `${exposureMessage(settings, exposed)}: give them other passwords (frontdesk hash-password), or set ALLOW_DEMO_USERS=true`,
    );
  }
  return loaded;
}

function exposureMessage(settings: ExposureSettings, exposed: readonly string[]): string {
  return `the demo passwords of ${exposed.join(' and ')} are published, and ${openHost(settings)} is open to the network`;
}

/** The rules for a reload that do not depend on the files. */
export interface ReloadPolicy {
  readonly directory: string;
  readonly settings: ExposureSettings;
  /** Returns errors for valid records that this process cannot serve. */
  readonly findUnservable: (configuration: Configuration) => Work<readonly ConfigurationError[]>;
}

/**
 * Returns the valid records of a reload, and the previous versions of the others. A broken record or user keeps its
 * previous version, and so do all records of an unreadable file. Broken records without a previous version are dropped.
 * AuthServices and RateLimitServices that disappeared are kept while a broken record may be one of them under another
 * name or in another file, because without them every mapping would be open. Limits are replaced as a whole or not at
 * all.
 */
export function* keepLastGood(
  loaded: LoadedConfiguration,
  current: Configuration,
  { directory, settings, findUnservable }: ReloadPolicy,
): Work<LoadedConfiguration> {
  const good = yield* fillGaps(directory, withoutExposedUsers(loaded, current, directory, settings), current);
  const errors = yield* findUnservable(good.configuration);
  if (errors.length === 0) return good;
  const configuration = yield* withoutRecords(good.configuration, errors);
  return yield* fillGaps(directory, { ...good, configuration, errors: [...good.errors, ...errors] }, current);
}

/** Adds the current versions of what is missing because of an error. */
function* fillGaps(directory: string, loaded: LoadedConfiguration, current: Configuration): Work<LoadedConfiguration> {
  const { configuration, errors, notices } = loaded;
  const { demo } = current;
  if (errors.length === 0)
    return Object.freeze({ ...loaded, configuration: Object.freeze({ ...configuration, demo }) });
  const errorsIn = (part: string) => errors.filter(({ source }) => isPartOf(part, source, directory));
  const { isMissing, mayBeRenamed } = yield* missingIn(configuration, current, errors, errorsIn('services'));
  const missing = yield* flatMapInParts(recordsOf(current), (record) => (isMissing(record) ? [record] : []));
  const { kept, errors: clashes, blocked } = yield* keepCompatible([...recordsOf(configuration), ...missing]);
  const keptNames = new Set(yield* mapInParts(kept, fullName));
  const stillBlocked = current.blocked.filter((match) => isMissing(mappingOf(match)));
  const possiblyRenamed = [...missing, ...stillBlocked.map(mappingOf)].filter(mayBeRenamed).map(fullName);
  const servedMatches = yield* matchesThatStay(current, kept);
  const allBlocked = withoutRepetitions([...configuration.blocked, ...blocked, ...stillBlocked]);
  const mayServe = (match: BlockedMatch) =>
    keptNames.has(fullName(mappingOf(match))) || servedMatches.has(matchKey(match));
  return Object.freeze({
    configuration: Object.freeze({
      ...configuration,
      ...(yield* recordLists(kept)),
      limits: errorsIn('ratelimit').length > 0 ? current.limits : configuration.limits,
      users: usersOf(configuration.users, current.users, errorsIn('users.yaml')),
      demo,
      blocked: Object.freeze(allBlocked.filter((match) => !mayServe(match))),
      possiblyRenamed: Object.freeze([...configuration.possiblyRenamed, ...possiblyRenamed]),
    }),
    errors: missing.length === 0 ? errors : [...errors, ...clashes],
    notices,
  });
}

/** Keeps only the first block, from the new files, of a record that was broken before and still is. */
function withoutRepetitions(blocked: readonly BlockedMatch[]): readonly BlockedMatch[] {
  const seen = new Set<string>();
  return blocked.filter((match) => {
    const key = `${matchKey(match)} ${match.name}`;
    return seen.size < seen.add(key).size;
  });
}

/** Returns the matches of current mappings that are kept. A new broken record does not block them. */
function* matchesThatStay(current: Configuration, kept: readonly GatewayRecord[]): Work<ReadonlySet<string>> {
  const stay = yield* keysOf(kept.filter((record) => record.kind === 'Mapping'));
  const blocked = yield* keysOf(current.blocked);
  const before = yield* keysOf(current.mappings);
  return new Set([...before].filter((key) => stay.has(key) && !blocked.has(key)));
}

type Named = Pick<GatewayRecord, 'kind' | 'name' | 'source'>;

interface Missing {
  /** Whether a current record is missing from the new configuration because of an error. */
  readonly isMissing: (record: Named) => boolean;
  /** Whether a missing record may be a broken one under another name. */
  readonly mayBeRenamed: (record: Named) => boolean;
}

/**
 * Finds the current records that are missing because of an error. An error without a record, or with an unknown one,
 * affects all records of its file or directory, because one of them may have been renamed. Records that were kept for
 * this reason stay until the file has no errors: on the next reload the new name is known, which hides the renaming.
 */
function* missingIn(
  configuration: Configuration,
  current: Configuration,
  errors: readonly ConfigurationError[],
  recordErrors: readonly ConfigurationError[],
): Work<Missing> {
  const names = new Set(yield* mapInParts(recordsOf(configuration), fullName));
  const known = new Set(yield* mapInParts(recordsOf(current), fullName));
  for (const match of current.blocked) known.add(fullName(mappingOf(match)));
  const possiblyRenamed = new Set(current.possiblyRenamed);
  const broken = new Set(errors.map(({ record }) => record));
  const unreadable = filesOf(errors.filter(({ record }) => record === undefined));
  const withUnknown = filesOf(errors.filter(({ record }) => record !== undefined && !known.has(record)));
  const withErrors = filesOf(errors);
  const mayBeGuard = recordErrors.some(({ record = '' }) => !/^(?:Mapping|Version) /.test(record));
  const isIn = (files: readonly string[], { source }: Named) => files.some((file) => contains(file, source));
  const mayBeRenamed = (record: Named) =>
    !broken.has(fullName(record)) &&
    (isIn(withUnknown, record) || (possiblyRenamed.has(fullName(record)) && isIn(withErrors, record)));
  const isMissing = (record: Named) =>
    !names.has(fullName(record)) &&
    ((mayBeGuard && isGuard(record)) ||
      broken.has(fullName(record)) ||
      isIn(unreadable, record) ||
      mayBeRenamed(record));
  return { isMissing, mayBeRenamed };
}

/**
 * Normalises the names as those in the sources of records are. An error of the directory has its name as it was given,
 * such as `./config` or `config/`.
 */
function filesOf(errors: readonly ConfigurationError[]): readonly string[] {
  return [...new Set(errors.map(({ source }) => join(source.file, '.')))];
}

function isGuard({ kind }: Named): boolean {
  return kind === 'AuthService' || kind === 'RateLimitService';
}

function contains(fileOrDirectory: string, { file }: Source): boolean {
  return fileOrDirectory === '.' || file === fileOrDirectory || file.startsWith(`${fileOrDirectory}/`);
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

/** Keeps the current users if the new ones include demo users and the server is open to the network. */
function withoutExposedUsers(
  loaded: LoadedConfiguration,
  current: Configuration,
  directory: string,
  settings: ReloadPolicy['settings'],
): LoadedConfiguration {
  const exposed = exposedDemoUsers(settings, loaded.configuration.users);
  if (exposed.length === 0) return loaded;
  const remedy = 'Give them other passwords (frontdesk hash-password), or set ALLOW_DEMO_USERS=true.';
  const error = fileError(`${directory}/users.yaml`, exposureMessage(settings, exposed), remedy, 1);
  const configuration = { ...loaded.configuration, users: current.users };
  return { ...loaded, configuration, errors: [...loaded.errors, error] };
}
