/** What goes into force of a directory that has changed: what is good of it, and what was there before in place of what is broken. */
import { relative } from 'node:path';
import type { Configuration, ConfigurationError, HeldPrefix, Source, User } from './configuration.ts';
import { heldByMapping } from './held.ts';
import type { LoadedConfiguration } from './load.ts';
import type { GatewayRecord } from './records.ts';
import { keepCompatible } from './uniqueness.ts';

/**
 * A broken record or user stays as it was before, and so does all that stood in a file that cannot be read; what was not
 * there before is left out. Who lets in and how often stays as long as a broken record may be meant for it, which may have
 * got another name or file: with none of them all would be open. Limits are taken whole or not at all. `previous` is what
 * is in force.
 */
export function keepGood(
  directory: string,
  { configuration, errors, notices }: LoadedConfiguration,
  previous: Configuration,
): LoadedConfiguration {
  const errorsIn = (part: string) => errors.filter(({ source }) => isPartOf(part, source, directory));
  const records = recordsOf(configuration);
  const names = new Set(records.map(fullName));
  const before = recordsOf(previous);
  const known = new Set([...before, ...previous.held.map(asMapping)].map(fullName));
  const isGuardInDoubt = errorsIn('services').some(({ record = '' }) => !/^(?:Mapping|Version) /.test(record));
  const isLeft = (record: Named) =>
    !names.has(fullName(record)) && ((isGuardInDoubt && isGuard(record)) || errors.some(speaksOf(record, known)));
  const left = before.filter(isLeft);
  const { kept, errors: clashes, held } = keepCompatible([...records, ...left]);
  const served = new Set(kept.map(fullName));
  const places = [...configuration.held, ...held, ...previous.held.filter((place) => isLeft(asMapping(place)))];
  return Object.freeze({
    configuration: Object.freeze({
      ...withRecords(configuration, kept),
      limits: errorsIn('ratelimit').length > 0 ? previous.limits : configuration.limits,
      users: usersOf(configuration.users, previous.users, errorsIn('users.yaml')),
      demo: previous.demo,
      held: Object.freeze(places.filter((place) => !served.has(fullName(asMapping(place))))),
    }),
    errors: left.length === 0 ? errors : [...errors, ...clashes],
    notices,
  });
}

/** The configuration without the records that `errors` name. */
export function withoutRecords(configuration: Configuration, errors: readonly ConfigurationError[]): Configuration {
  const named = new Set(errors.map(({ record }) => record));
  const isGood = (record: Named) => !named.has(fullName(record));
  const { mappings, held } = configuration;
  return {
    ...withRecords(configuration, recordsOf(configuration).filter(isGood)),
    held: [...held, ...mappings.filter((mapping) => !isGood(mapping)).flatMap(heldByMapping)],
  };
}

function recordsOf({ mappings, authServices, rateLimitServices, versions }: Configuration): GatewayRecord[] {
  return [...mappings, ...authServices, ...rateLimitServices, ...versions];
}

function withRecords(configuration: Configuration, records: readonly GatewayRecord[]): Configuration {
  return {
    ...configuration,
    mappings: records.filter((record) => record.kind === 'Mapping'),
    authServices: records.filter((record) => record.kind === 'AuthService'),
    rateLimitServices: records.filter((record) => record.kind === 'RateLimitService'),
    versions: records.filter((record) => record.kind === 'Version'),
  };
}

/** Who is gone is gone at once, whatever is wrong with somebody else. */
function usersOf(users: readonly User[], previous: readonly User[], errors: readonly ConfigurationError[]): User[] {
  const names = new Set(users.map(({ name }) => name));
  const isBroken = ({ name }: User) =>
    errors.some(({ record }) => record === `User ${name}` || record?.startsWith('User') !== true);
  return [...users, ...previous.filter((user) => !names.has(user.name) && isBroken(user))];
}

function isGuard({ kind }: Named): boolean {
  return kind === 'AuthService' || kind === 'RateLimitService';
}

type Named = Pick<GatewayRecord, 'kind' | 'name' | 'source'>;

function asMapping({ name, source }: HeldPrefix): Named {
  return { kind: 'Mapping', name, source };
}

/** As errors name it. */
function fullName({ kind, name }: Pick<Named, 'kind' | 'name'>): string {
  return `${kind} ${name}`;
}

/**
 * An error that names no record, or none that is known from before, speaks of all that its file held, or its directory:
 * what is gone from there may be what is broken now, under another name.
 */
function speaksOf(record: Named, known: ReadonlySet<string>): (error: ConfigurationError) => boolean {
  const name = fullName(record);
  const isOfAnother = (named = '') => known.has(named);
  return ({ record: named, source }) => named === name || (!isOfAnother(named) && holds(source.file, record.source));
}

function holds(fileOrDirectory: string, { file }: Source): boolean {
  return file === fileOrDirectory || file.startsWith(`${fileOrDirectory}/`);
}

/** An error of the directory itself is one of every part. */
function isPartOf(part: string, { file }: Source, directory: string): boolean {
  const [first = ''] = relative(directory, file).split(/[/\\]/);
  return first === part || first === '';
}
