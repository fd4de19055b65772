/** Reloads the configuration when files change: atomically, keeping the last good version of broken records. */
import { createHash } from 'node:crypto';
import { resolve } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import {
  type Configuration,
  type ConfigurationError,
  type ConfigurationWatch,
  fileError,
  finish,
  finishInTurns,
  forEachInParts,
  formatErrors,
  keepLastGood,
  type LoadedConfiguration,
  type Work,
  watchConfiguration,
} from '#config';
import type { Setup } from './options.ts';
import { checkModulesRun, checkServiceRoles } from './record-services.ts';

/** A configuration that is or was in use. Replicas with the same files have the same hash. */
export interface Generation {
  /** 1 at the start of the process, incremented by each change. */
  readonly number: number;
  /** The first 12 hexadecimal digits of the records' SHA-256, computed on the first call. */
  readonly hash: () => string;
  /** Milliseconds since the epoch. */
  readonly appliedAtMs: number;
  readonly configuration: Configuration;
}

/** Prepares a part of the server for a configuration. Throws if the part cannot use it. */
export type Prepare = (configuration: Configuration) => Commit | Work<Commit>;

/** Makes the part use the prepared configuration. Must not throw. */
export type Commit = () => void;

/** Counts the reloads of changed files. */
export interface Reloads {
  /** Reloads without errors. */
  readonly succeeded: number;
  /** Reloads with at least one error, even if the other records took effect. */
  readonly failed: number;
  /** The duration of the last reload, including a failed one. 0 before the first. */
  readonly lastDurationMs: number;
}

export interface LiveConfiguration {
  readonly current: () => Generation;
  /** The errors in the current files. The faulty versions of records are not used. */
  readonly errors: () => readonly ConfigurationError[];
  /** Reports on parts of the current files that are valid but suspicious. */
  readonly notices: () => readonly ConfigurationError[];
  readonly reloads: () => Reloads;
  /**
   * Prepares and commits the current configuration immediately, and each new one on a reload. When all parts are
   * prepared, all commit in the same turn of the event loop, so that no request sees a mix of two configurations. If
   * one throws, nothing changes.
   */
  readonly onChange: (prepare: Prepare) => void;
  /** Starts watching the files. Does nothing when a program provided the records. */
  readonly watch: () => Promise<void>;
  /** Reads the files now, if they are watched. Resolves when they have taken effect or have been rejected. */
  readonly reload: () => Promise<void>;
  readonly close: () => Promise<void>;
}

/** Throws a user-facing Error if a record uses a service of this process in a role that it cannot have. */
export function createLiveConfiguration(setup: Setup): LiveConfiguration {
  const { configDirectory, settings, logger, clock } = setup;
  requireServiceRoles(setup);
  const parts: Prepare[] = [];
  let { errors } = setup.loaded;
  let notices = finish(noticesOf(setup.loaded));
  let current = createGeneration(setup.loaded.configuration, 1, clock());
  let reloads: Reloads = { succeeded: 0, failed: 0, lastDurationMs: 0 };
  let watching: Promise<ConfigurationWatch> | undefined;

  const policy = {
    directory: configDirectory ?? '',
    settings,
    *findUnservable(found: Configuration) {
      return [...checkModulesRun(setup, found), ...(yield* checkServiceRoles(setup, found))];
    },
  };

  function* noticesOf({ configuration, notices: ofFiles }: LoadedConfiguration): Work<readonly ConfigurationError[]> {
    return [...ofFiles, ...(yield* setup.notices(configuration))];
  }

  /** Does all slow work first, so that the visible state changes in a single turn. Must not be called concurrently. */
  async function apply(loaded: LoadedConfiguration, startedAtMs: number): Promise<void> {
    const good = await finishInTurns(keepLastGood(loaded, current.configuration, policy));
    const prepareStartedAtMs = performance.now();
    const isNew = !(await finishInTurns(isSame(good.configuration, current.configuration)));
    const prepared = isNew ? await prepare(good.configuration) : undefined;
    const newNotices = await finishInTurns(noticesOf(good));
    const areNoticesNew = !(await finishInTurns(isSameList(newNotices, notices)));
    const hadErrors = errors.length > 0;
    errors = [...good.errors, ...(prepared?.errors ?? [])];
    notices = newNotices;
    if (areNoticesNew) reportNotices();
    if (errors.length > 0) reportErrors('the last good version of each broken part stays in use');
    if (prepared?.next !== undefined) commit(prepared.next, prepareStartedAtMs);
    if (hadErrors && errors.length === 0) reportFixed();
    countReload(performance.now() - startedAtMs);
  }

  async function prepare(configuration: Configuration): Promise<Prepared> {
    try {
      const hash = await finishInTurns(hashOf(configuration));
      const commits: Commit[] = [];
      for (const part of parts) {
        const prepared = part(configuration);
        commits.push(typeof prepared === 'function' ? prepared : await finishInTurns(prepared));
      }
      return { next: { configuration, hash, commits }, errors: [] };
    } catch (thrown) {
      logger.error({ err: thrown }, 'the configuration cannot be applied');
      return { next: undefined, errors: [unusableError(thrown, setup)] };
    }
  }

  function commit({ configuration, hash, commits }: Next, prepareStartedAtMs: number): void {
    const hadAuth = current.configuration.authServices.length > 0;
    for (const commit of commits) commit();
    current = createGeneration(configuration, current.number + 1, clock(), hash);
    const { number: generation } = current;
    const durationMs = Math.round(performance.now() - prepareStartedAtMs);
    const mappings = configuration.mappings.length;
    logger.info({ generation, hash, mappings, durationMs }, 'configuration reloaded');
    if (hadAuth && configuration.authServices.length === 0)
      logger.warn({ generation }, 'the configuration no longer has an AuthService: all mappings are open');
  }

  function countReload(lastDurationMs: number): void {
    const isGood = errors.length === 0;
    const { succeeded, failed } = reloads;
    reloads = isGood
      ? { succeeded: succeeded + 1, failed, lastDurationMs }
      : { succeeded, failed: failed + 1, lastDurationMs };
  }

  function reportFixed(): void {
    logger.info({ generation: current.number }, 'all errors of the configuration are fixed');
  }

  function reportErrors(consequence: string): void {
    const message = `the configuration has errors; ${consequence}:\n${formatFirst(errors)}`;
    logger.error({ errors: errors.length, generation: current.number }, message);
  }

  function reportNotices(): void {
    if (notices.length === 0) return;
    const message = `the configuration may not do what you expect:\n${formatFirst(notices)}`;
    logger.warn({ notices: notices.length }, message);
  }

  return Object.freeze({
    current: () => current,
    errors: () => errors,
    notices: () => notices,
    reloads: () => reloads,
    onChange(prepare: Prepare) {
      const prepared = prepare(current.configuration);
      const commit = typeof prepared === 'function' ? prepared : finish(prepared);
      commit();
      parts.push(prepare);
    },
    async watch() {
      if (errors.length > 0) reportErrors('the rest of it is in use');
      reportNotices();
      if (configDirectory === undefined) return;
      watching = watchConfiguration({
        directory: configDirectory,
        gatewayDomain: settings.gatewayDomain,
        strictPaths: settings.strictPaths,
        initial: setup.loaded,
        onChange: apply,
        onError: (error) => logger.error({ err: error }, 'the configuration cannot be watched or read'),
      });
      await watching;
    },
    async reload() {
      const { number: generation } = current;
      await (await watching)?.reload();
      if (current.number === generation) logger.info({ generation }, 'the configuration in use has not changed');
    },
    async close() {
      await (await watching)?.close();
    },
  });
}

interface Next {
  readonly configuration: Configuration;
  readonly hash: string;
  readonly commits: readonly Commit[];
}

interface Prepared {
  /** Undefined when the configuration cannot be applied. `errors` says why. */
  readonly next: Next | undefined;
  readonly errors: readonly ConfigurationError[];
}

function requireServiceRoles(setup: Setup): void {
  const errors = finish(checkServiceRoles(setup, setup.loaded.configuration));
  if (errors.length > 0) throw new Error(formatErrors(errors, resolve('.')));
}

/** Keeps the log readable. `frontdesk check` lists all errors. */
const reportedMax = 100;

function formatFirst(errors: readonly ConfigurationError[]): string {
  const text = formatErrors(errors.slice(0, reportedMax), resolve('.'));
  const more = errors.length - reportedMax;
  return more <= 0 ? text : `${text}\nand ${more} more: frontdesk check lists all of them`;
}

/** The error for records that are valid, but that a part of the server cannot use. */
function unusableError(thrown: unknown, { configDirectory = '' }: Setup): ConfigurationError {
  const message = `the configuration cannot be applied: ${thrown instanceof Error ? thrown.message : String(thrown)}`;
  return fileError(configDirectory, message, 'Undo the last change, or try a restart.');
}

function createGeneration(
  configuration: Configuration,
  number: number,
  appliedAtMs: number,
  knownHash?: string,
): Generation {
  let hash = knownHash;
  return Object.freeze({
    number,
    hash: () => {
      hash ??= finish(hashOf(configuration));
      return hash;
    },
    appliedAtMs,
    configuration,
  });
}

/** Ignores file names and lines, because the directory may have another path on each replica. */
function* hashOf(configuration: Configuration): Work<string> {
  const hash = createHash('sha256');
  for (const [name, value] of Object.entries(configuration)) {
    hash.update(`${name}\n`);
    yield* forEachInParts([value].flat(), (item) => {
      const text = JSON.stringify(item, (_key, inner) => (isSource(inner) ? undefined : inner));
      hash.update(`${text}\n`);
    });
  }
  return hash.digest('hex').slice(0, 12);
}

function* isSame(one: Configuration, other: Configuration): Work<boolean> {
  for (const [name, value] of Object.entries(one))
    if (!(yield* isSameList([value].flat(), [Reflect.get(other, name)].flat()))) return false;
  return true;
}

function* isSameList(one: readonly unknown[], other: readonly unknown[]): Work<boolean> {
  if (one.length !== other.length) return false;
  let same = true;
  yield* forEachInParts(one.entries(), ([index, item]) => {
    same &&= isDeepStrictEqual(item, other[index]);
  });
  return same;
}

function isSource(value: unknown): boolean {
  return typeof value === 'object' && value !== null && 'file' in value && 'line' in value;
}
