/** Reloads the configuration when files or a cluster change: in one step, and what is refused stays as it was. */
import { createHash } from 'node:crypto';
import { resolve } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import {
  type Acceptance,
  accept,
  type Configuration,
  type ConfigurationError,
  fileError,
  formatErrors,
  type LoadedConfiguration,
  mapInTurns,
  nextTurn,
  type Refusal,
  refuseRecords,
  requireNoErrors,
  type ServedCertificate,
} from '#config';
import { isMap, messageOf } from '#foundation';
import type { KubernetesState } from '#kubernetes';
import { formatAccepted, formatObjects, newlyRefused } from './kubernetes/refused-objects.ts';
import { openSources } from './kubernetes/sources.ts';
import { withRefusedObjects } from './kubernetes/with-cluster.ts';
import type { Setup } from './options.ts';
import { checkModulesRun, checkServiceRoles } from './record-services.ts';

/** A configuration that is or was in use. Replicas with the same files have the same hash. */
export interface Generation {
  /** 1 at the start of the process, incremented by each change. */
  readonly number: number;
  /** The first 12 hexadecimal digits of the records' SHA-256. */
  readonly hash: string;
  /** Milliseconds since the epoch. */
  readonly appliedAtMs: number;
  readonly configuration: Configuration;
}

/** Prepares a part of the server for a configuration. Throws if the part cannot use it. */
export type Prepare = (configuration: Configuration) => Commit | Promise<Commit>;

/** Makes the part use the prepared configuration, which is current from now on. Must not throw. */
export type Commit = (generation: Generation) => void;

/** Counts the reloads of changed files. */
export interface Reloads {
  /** Reloads without errors. */
  readonly succeeded: number;
  /** Reloads of which at least a part was refused. */
  readonly failed: number;
  /** The duration of the last reload, including a failed one. 0 before the first. */
  readonly lastDurationMs: number;
}

/** A refusal that is reported until the files are mended. */
export interface Refused extends Refusal {
  /** When the part was first refused, in milliseconds since the epoch. */
  readonly sinceMs: number;
}

export interface LiveConfiguration {
  readonly current: () => Generation;
  /** What is not in use, or not all of it: at most one for each part of the files and for each object of a cluster. */
  readonly refused: () => readonly Refused[];
  /** The errors of all refused parts. */
  readonly errors: () => readonly ConfigurationError[];
  /** Reports on parts of the current files that are valid but suspicious. */
  readonly notices: () => readonly ConfigurationError[];
  /** The state of the cluster that the records come from. Undefined for files, and in a thread, which asks the main one. */
  readonly kubernetes: () => KubernetesState | undefined;
  readonly reloads: () => Reloads;
  /**
   * Prepares each new configuration. When all parts are prepared, all commit in the same turn of the event loop, so that
   * no request sees a mix of two configurations. If one throws or rejects, nothing changes.
   */
  readonly onChange: (prepare: Prepare) => void;
  /** Starts watching the files. Does nothing when a program provided the records. */
  readonly watch: () => Promise<void>;
  /** Reads the files now, if they are watched. Resolves when they have taken effect or have been rejected. */
  readonly reload: () => Promise<void>;
  readonly close: () => Promise<void>;
}

/** The configuration of a process, which it reads from files and from a cluster. */
export interface OpenConfiguration extends LiveConfiguration {
  /** The certificates of the cluster. Undefined without a cluster, and before it has been read. */
  readonly certificates: () => readonly ServedCertificate[] | undefined;
  /** Calls `listener` after every reload, whether or not it was accepted, and waits for it. It must not reject. */
  readonly afterReload: (listener: () => Promise<void> | void) => void;
}

/** Throws a user-facing Error if a record uses a service of this process in a role that it cannot have. */
export async function openLiveConfiguration(setup: Setup): Promise<OpenConfiguration> {
  const { configDirectory, settings, logger, clock } = setup;
  const sources = await openSources(setup);
  const first = sources.loaded();
  requireUsable(setup, first);
  const parts: Prepare[] = [];
  const listeners: (() => Promise<void> | void)[] = [];
  let notices = await noticesOf(first);
  const { configuration: initial } = first;
  let current: Generation = { number: 1, hash: await hashOf(initial), appliedAtMs: clock(), configuration: initial };
  let reloads: Reloads = { succeeded: 0, failed: 0, lastDurationMs: 0 };
  const refusals = createRefusals(setup, () => current.number);
  const policy = {
    directory: configDirectory ?? '',
    settings,
    findUnservable: (found: Configuration) => [...checkModulesRun(setup, found), ...checkServiceRoles(setup, found)],
  };

  async function noticesOf({ configuration, notices: ofFiles }: LoadedConfiguration) {
    return [...ofFiles, ...(await setup.notices(configuration))];
  }

  /** Does all slow work first, so that the visible state changes in a single turn. Must not be called concurrently. */
  async function apply(startedAtMs: number): Promise<unknown> {
    await nextTurn();
    const loaded = sources.loaded();
    const accepted = withRefusedObjects(accept(loaded, current.configuration, policy), sources.ofCluster());
    const prepareStartedAtMs = performance.now();
    const { next, configuration, refusals: found, thrown } = await prepare(accepted);
    await nextTurn();
    const newNotices = await noticesOf({ ...loaded, configuration });
    await nextTurn();
    const areNoticesNew = !isDeepStrictEqual(newNotices, notices);
    const hadErrors = refusals.current().length > 0;
    notices = newNotices;
    if (areNoticesNew) reportNotices();
    refusals.update(found);
    if (next !== undefined) commit(next, prepareStartedAtMs);
    if (hadErrors && found.length === 0)
      logger.info({ generation: current.number }, 'all errors of the configuration are fixed');
    countReload(found.length === 0, performance.now() - startedAtMs);
    for (const listener of listeners) await listener();
    return thrown;
  }

  /** Refuses the records, but not the users, if a part of the server cannot use the configuration. */
  async function prepare(accepted: Acceptance): Promise<Prepared> {
    try {
      return { ...accepted, next: await prepareNext(accepted.configuration), thrown: undefined };
    } catch (thrown) {
      logger.error({ err: thrown }, 'the configuration cannot be applied');
      const usersOnly = { ...current.configuration, users: accepted.configuration.users };
      const others = accepted.refusals.filter(({ part, object }) => part === 'users' || object !== undefined);
      return {
        next: await prepareNext(usersOnly),
        configuration: usersOnly,
        refusals: [...refuseRecords([unusableError(thrown, setup)]), ...others],
        thrown,
      };
    }
  }

  /** Resolves to undefined if the configuration is the current one. */
  async function prepareNext(configuration: Configuration): Promise<Next | undefined> {
    if (isSame(configuration, current.configuration)) return undefined;
    const hash = await hashOf(configuration);
    const commits: Commit[] = [];
    for (const part of parts) commits.push(await part(configuration));
    return { configuration, hash, commits };
  }

  function commit({ configuration, hash, commits }: Next, prepareStartedAtMs: number): void {
    const hadAuth = current.configuration.authServices.length > 0;
    current = { number: current.number + 1, hash, appliedAtMs: clock(), configuration };
    for (const commit of commits) commit(current);
    const { number: generation } = current;
    const durationMs = Math.round(performance.now() - prepareStartedAtMs);
    const mappings = configuration.mappings.length;
    logger.info({ generation, hash, mappings, durationMs }, 'configuration reloaded');
    if (hadAuth && configuration.authServices.length === 0)
      logger.warn({ generation }, 'the configuration no longer has an AuthService: all mappings are open');
  }

  function countReload(isGood: boolean, lastDurationMs: number): void {
    const { succeeded, failed } = reloads;
    reloads = isGood
      ? { succeeded: succeeded + 1, failed, lastDurationMs }
      : { succeeded, failed: failed + 1, lastDurationMs };
  }

  function reportNotices(): void {
    if (notices.length === 0) return;
    const message = `the configuration may not do what you expect:\n${formatFirst(notices)}`;
    logger.warn({ notices: notices.length }, message);
  }

  return Object.freeze({
    current: () => current,
    refused: refusals.current,
    errors: refusals.errors,
    notices: () => notices,
    kubernetes: sources.state,
    certificates: sources.certificates,
    reloads: () => reloads,
    onChange(prepare: Prepare) {
      parts.push(prepare);
    },
    afterReload(listener: () => Promise<void> | void) {
      listeners.push(listener);
    },
    async watch() {
      reportNotices();
      await sources.watch(apply);
    },
    async reload() {
      const { number: generation } = current;
      await sources.reload();
      if (current.number === generation) logger.info({ generation }, 'the configuration in use has not changed');
    },
    async close() {
      await sources.close();
      refusals.close();
    },
  });
}

interface Next {
  readonly configuration: Configuration;
  readonly hash: string;
  readonly commits: readonly Commit[];
}

interface Prepared extends Acceptance {
  /** Undefined when nothing changes. */
  readonly next: Next | undefined;
  /** By a part of the server that cannot use the configuration. */
  readonly thrown: unknown;
}

const reminderMs = 600_000;

/** Remembers what is refused, and logs it at every change and every ten minutes. `generation` returns the number of the configuration in use. */
export function createRefusals({ logger, clock }: Pick<Setup, 'logger' | 'clock'>, generation: () => number) {
  let refused: readonly Refused[] = [];
  let reminder: NodeJS.Timeout | undefined;

  function reportParts(): void {
    for (const { part, object, consequence, errors, sinceMs } of refused) {
      if (object !== undefined) continue;
      const since = new Date(sinceMs).toISOString();
      const message = `the configuration has had errors since ${since}; until they are fixed, ${consequence}`;
      logger.error(
        { part, since, errors: errors.length, generation: generation() },
        `${message}:\n${formatFirst(errors)}`,
      );
    }
  }

  function reportObjects(objects: readonly Refusal[]): void {
    if (objects.length === 0) return;
    const fields = { objects: objects.length, generation: generation() };
    logger.error(fields, formatObjects(objects, formatFirst));
  }

  function report(): void {
    reportParts();
    reportObjects(refused.filter(({ object }) => object !== undefined));
  }

  return {
    current: () => refused,
    /** An error of the directory itself concerns both parts, and appears once. */
    errors: () => [...new Set(refused.flatMap(({ errors }) => errors))],
    update(refusals: readonly Refusal[]): void {
      const before = refused;
      const sinceMs = new Map(before.map((one) => [one.object ?? one.part, one.sinceMs]));
      refused = refusals.map((one) => ({ ...one, sinceMs: sinceMs.get(one.object ?? one.part) ?? clock() }));
      reportParts();
      reportObjects(newlyRefused(refused, before));
      const accepted = formatAccepted(refused, before);
      if (accepted !== undefined) logger.info({ generation: generation() }, accepted);
      clearInterval(reminder);
      if (refused.length > 0) reminder = setInterval(report, reminderMs).unref();
    },
    close: () => clearInterval(reminder),
  };
}

/** Keeps the log readable. `frontdesk check` lists all errors. */
const reportedMax = 100;

export function formatFirst(errors: readonly ConfigurationError[]): string {
  const text = formatErrors(errors.slice(0, reportedMax), resolve('.'));
  const more = errors.length - reportedMax;
  return more <= 0 ? text : `${text}\nand ${more} more: frontdesk check lists all of them`;
}

function requireUsable(setup: Setup, loaded: LoadedConfiguration): void {
  requireNoErrors(loaded);
  const errors = checkServiceRoles(setup, loaded.configuration);
  if (errors.length > 0) throw new Error(formatErrors(errors, resolve('.')));
}

/** The error for records that are valid, but that a part of the server cannot use. */
function unusableError(thrown: unknown, { configDirectory = '' }: Setup): ConfigurationError {
  const message = `the configuration cannot be applied: ${messageOf(thrown)}`;
  return fileError(configDirectory, message, 'Undo the last change, or try a restart.');
}

/** Ignores file names and lines, because the directory may have another path on each replica. */
async function hashOf(configuration: Configuration): Promise<string> {
  const hash = createHash('sha256');
  const items = Object.entries(configuration).flatMap(([name, value]) => [name, ...[value].flat()]);
  await mapInTurns(items, (item) => {
    const text = JSON.stringify(item, (_key, inner) => (isSource(inner) ? undefined : inner));
    hash.update(`${text}\n`);
  });
  return hash.digest('hex').slice(0, 12);
}

function isSource(value: unknown): boolean {
  return isMap(value) && 'file' in value && 'line' in value;
}

/** Compares no contents: what was read from a file that has not changed consists of the same objects. */
function isSame(one: Configuration, other: Configuration): boolean {
  return Object.entries(one).every(([name, value]) => {
    const [items, others] = [[value].flat(), [Reflect.get(other, name)].flat()];
    return items.length === others.length && items.every((item, index) => item === others[index]);
  });
}
