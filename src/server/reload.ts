/** Reloads the configuration: reads it, keeps the last good one, prepares it, puts it into force in one turn, and counts. */
import { createHash } from 'node:crypto';
import { resolve } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import {
  type Configuration,
  type ConfigurationError,
  type ConfigurationWatch,
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
import { checkServiceRoles } from './record-services.ts';

/** One configuration that was in force. Replicas with the same files have the same hash. */
export interface Generation {
  /** From 1 at the start of the process. */
  readonly number: number;
  /** The first 12 hexadecimal digits of the SHA-256 of its records; computed at the first call. */
  readonly hash: () => string;
  /** Milliseconds since the epoch. */
  readonly appliedAtMs: number;
  readonly configuration: Configuration;
}

/** Makes ready what a part of the server does with a configuration, and throws when it cannot. */
export type Prepare = (configuration: Configuration) => Commit | Work<Commit>;

/** Puts what was made ready into force. Must not throw. */
export type Commit = () => void;

/** How often the files have changed and were read. */
export interface Reloads {
  /** Without an error. */
  readonly succeeded: number;
  /** With at least one error, though the rest came into force. */
  readonly failed: number;
  /** Of the last one, from reading to being in force or refused; 0 before the first. */
  readonly lastDurationMs: number;
}

export interface LiveConfiguration {
  readonly current: () => Generation;
  /** What is wrong with the files as they are now, and so not in force. */
  readonly errors: () => readonly ConfigurationError[];
  /** What is odd about the files without being wrong. */
  readonly notices: () => readonly ConfigurationError[];
  readonly reloads: () => Reloads;
  /**
   * Prepares and commits at once, and again at each reload. When all parts are prepared, all commit within one turn, so
   * that no request meets half of a configuration; when one throws, nothing changes.
   */
  readonly onChange: (prepare: Prepare) => void;
  /** From here on changed files are read. Does nothing where a program handed the records in. */
  readonly watch: () => Promise<void>;
  /** Reads the files now, if they are watched. Resolves when they are in force or refused. */
  readonly reload: () => Promise<void>;
  readonly close: () => Promise<void>;
}

/** Throws an Error fit for a terminal when a record names a service of this process in a role that it cannot play. */
export function createLiveConfiguration(setup: Setup): LiveConfiguration {
  const { configDirectory, settings, logger, clock } = setup;
  requireServiceRoles(setup);
  const parts: Prepare[] = [];
  let { errors } = setup.loaded;
  let notices = finish(noticesOf(setup.loaded));
  let current = createGeneration(setup.configuration, 1, clock());
  let reloads: Reloads = { succeeded: 0, failed: 0, lastDurationMs: 0 };
  let watching: Promise<ConfigurationWatch> | undefined;

  const policy = {
    directory: configDirectory ?? '',
    settings,
    refused: (found: Configuration) => checkServiceRoles(setup, found),
  };

  function* noticesOf({ configuration, notices: ofFiles }: LoadedConfiguration): Work<readonly ConfigurationError[]> {
    return [...ofFiles, ...(yield* setup.notices(configuration))];
  }

  /** Everything that takes long comes before the last turn, in which all that can be seen changes. One call at a time. */
  async function read(loaded: LoadedConfiguration, startedAtMs: number): Promise<void> {
    const good = await finishInTurns(keepLastGood(loaded, current.configuration, policy));
    const preparedAtMs = performance.now();
    const isNew = !(await finishInTurns(isSame(good.configuration, current.configuration)));
    const prepared = isNew ? await prepare(good.configuration) : undefined;
    const found = await finishInTurns(noticesOf(good));
    const hasNewNotices = !(await finishInTurns(isSameList(found, notices)));
    const hadErrors = errors.length > 0;
    errors = [...good.errors, ...(prepared?.errors ?? [])];
    notices = found;
    if (hasNewNotices) reportNotices();
    if (errors.length > 0) report('what was good before stays in force');
    if (prepared?.next !== undefined) commit(prepared.next, preparedAtMs);
    else if (hadErrors) reportMended();
    count(performance.now() - startedAtMs);
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
      logger.error({ err: thrown }, 'the configuration cannot be put into force');
      return { next: undefined, errors: [unusableError(thrown, setup)] };
    }
  }

  function commit({ configuration, hash, commits }: Next, preparedAtMs: number): void {
    const hadAuth = current.configuration.authServices.length > 0;
    for (const putIntoForce of commits) putIntoForce();
    current = createGeneration(configuration, current.number + 1, clock(), hash);
    const { number: generation } = current;
    const durationMs = Math.round(performance.now() - preparedAtMs);
    const mappings = configuration.mappings.length;
    logger.info({ generation, hash, mappings, durationMs }, 'configuration reloaded');
    if (hadAuth && configuration.authServices.length === 0)
      logger.warn({ generation }, 'no record names an auth service any more: every mapping is open');
  }

  function count(lastDurationMs: number): void {
    const isGood = errors.length === 0;
    const { succeeded, failed } = reloads;
    reloads = isGood
      ? { succeeded: succeeded + 1, failed, lastDurationMs }
      : { succeeded, failed: failed + 1, lastDurationMs };
  }

  function reportMended(): void {
    if (errors.length === 0) logger.info({ generation: current.number }, 'the configuration has no errors any more');
  }

  function report(consequence: string): void {
    const message = `the configuration has errors, ${consequence}:\n${formatFirst(errors)}`;
    logger.error({ errors: errors.length, generation: current.number }, message);
  }

  function reportNotices(): void {
    if (notices.length === 0) return;
    const message = `the configuration may not do what it should:\n${formatFirst(notices)}`;
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
      if (errors.length > 0) report('the rest of it is served');
      reportNotices();
      if (configDirectory === undefined) return;
      watching = watchConfiguration({
        directory: configDirectory,
        gatewayDomain: settings.gatewayDomain,
        strictPaths: settings.strictPaths,
        initial: setup.loaded,
        onChange: read,
        onError: (error) => logger.error({ err: error }, 'the configuration cannot be watched or read'),
      });
      await watching;
    },
    async reload() {
      await (await watching)?.reload();
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
  /** Undefined: `errors` say why the configuration cannot be put into force. */
  readonly next: Next | undefined;
  readonly errors: readonly ConfigurationError[];
}

function requireServiceRoles(setup: Setup): void {
  const errors = finish(checkServiceRoles(setup, setup.configuration));
  if (errors.length > 0) throw new Error(formatErrors(errors, resolve('.')));
}

/** A log has no use for thousands: `frontdesk check` lists all of them. */
const reportedMax = 100;

function formatFirst(errors: readonly ConfigurationError[]): string {
  const text = formatErrors(errors.slice(0, reportedMax), resolve('.'));
  const more = errors.length - reportedMax;
  return more <= 0 ? text : `${text}\nand ${more} more: frontdesk check lists all of them`;
}

/** The records pass every check, and still a part of the server cannot use them. */
function unusableError(thrown: unknown, { configDirectory = '' }: Setup): ConfigurationError {
  return {
    source: { file: configDirectory, line: 1 },
    record: undefined,
    message: `it cannot be put into force: ${thrown instanceof Error ? thrown.message : String(thrown)}`,
    remedy: 'Undo the last change, or restart to see whether it works from the start.',
  };
}

function createGeneration(
  configuration: Configuration,
  number: number,
  appliedAtMs: number,
  known?: string,
): Generation {
  let hash = known;
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

/** Without the places of the records in files: replicas may have their directories elsewhere. */
function* hashOf(configuration: Configuration): Work<string> {
  const hash = createHash('sha256');
  for (const [name, value] of Object.entries(configuration)) {
    hash.update(`${name}\n`);
    yield* forEachInParts(Array.isArray(value) ? value : [value], (item) => {
      const text = JSON.stringify(item, (_key, inner) => (isSource(inner) ? undefined : inner));
      hash.update(`${text}\n`);
    });
  }
  return hash.digest('hex').slice(0, 12);
}

function* isSame(one: Configuration, other: Configuration): Work<boolean> {
  let same: boolean;
  for (const [name, value] of Object.entries(one)) {
    const others: unknown = Reflect.get(other, name);
    if (!Array.isArray(value) || !Array.isArray(others)) same = isDeepStrictEqual(value, others);
    else same = yield* isSameList(value, others);
    if (!same) return false;
  }
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
