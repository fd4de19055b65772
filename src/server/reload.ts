/** The configuration of a process over time: what is in force, since when, and why the files as they are now are not. */
import { createHash } from 'node:crypto';
import { resolve } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import {
  type Configuration,
  type ConfigurationError,
  type ConfigurationWatch,
  exposedDemoUsers,
  formatErrors,
  keepGood,
  type LoadedConfiguration,
  watchConfiguration,
  withoutRecords,
} from '#config';
import type { Settled } from './options.ts';
import { misnamedRecords } from './services.ts';

/** One configuration that was in force. Replicas with the same files have the same hash. */
export interface Generation {
  /** From 1 at the start of the process. */
  readonly number: number;
  /** The first 12 hexadecimal digits of the SHA-256 of what it says; worked out when it is first asked for. */
  readonly hash: () => string;
  /** Milliseconds since the epoch. */
  readonly appliedAtMs: number;
  readonly configuration: Configuration;
}

/**
 * Makes a new configuration ready, and gives the function that puts it into force. When all are ready all are put into
 * force within one turn, so that no request meets half of it; when one throws, nothing changes.
 */
export type Follower = (configuration: Configuration) => () => void;

export type ReadListener = (isGood: boolean, durationMs: number) => void;

export interface Generations {
  readonly current: () => Generation;
  /** Why the files as they are now are not what is in force, as far as they are not. */
  readonly errors: () => readonly ConfigurationError[];
  /** What is odd about them without being wrong. */
  readonly notices: () => readonly ConfigurationError[];
  readonly follow: (follower: Follower) => void;
  /** Hears of each reading when it is in force, or refused: whether it was without an error, and how long all of it took. */
  readonly onRead: (listener: ReadListener) => void;
  /** From here on changes of the files are taken over; nothing to watch where a program handed the records in. */
  readonly watch: () => Promise<void>;
  readonly close: () => Promise<void>;
}

export function createGenerations(settled: Settled): Generations {
  const { configDirectory, settings, logger, clock } = settled;
  const followers: Follower[] = [];
  const listeners: ReadListener[] = [];
  let { configuration, errors, notices } = firstOf(settled);
  let current = generationOf(configuration, 1, clock());
  let watching: Promise<ConfigurationWatch> | undefined;

  function read(loaded: LoadedConfiguration, startedAtMs: number): void {
    const wasBroken = errors.length > 0;
    const good = admit(loaded, settled, current.configuration);
    ({ configuration, errors, notices } = good);
    const startedAt = performance.now();
    const isNew = !isDeepStrictEqual(configuration, current.configuration);
    const ready = isNew ? prepare() : undefined;
    if (errors.length > 0) report(errors, 'what was good before stays');
    if (ready !== undefined) apply(ready, startedAt);
    else if (wasBroken && errors.length === 0)
      logger.info({ generation: current.number }, 'the configuration is mended');
    for (const listener of listeners) listener(errors.length === 0, performance.now() - startedAtMs);
  }

  /** Undefined, and one error more, when it cannot be put into force. */
  function prepare(): readonly (() => void)[] | undefined {
    try {
      return followers.map((follower) => follower(configuration));
    } catch (thrown) {
      logger.error({ err: thrown }, 'the configuration cannot be put into force');
      errors = [...errors, unfitError(thrown, settled)];
      return undefined;
    }
  }

  function apply(ready: readonly (() => void)[], startedAt: number): void {
    const wasGuarded = current.configuration.authServices.length > 0;
    for (const putIntoForce of ready) putIntoForce();
    current = generationOf(configuration, current.number + 1, clock());
    const { number: generation } = current;
    const hash = current.hash();
    const durationMs = Math.round(performance.now() - startedAt);
    logger.info(
      { generation, hash, mappings: configuration.mappings.length, durationMs },
      'the configuration was read anew',
    );
    if (wasGuarded && configuration.authServices.length === 0)
      logger.warn({ generation }, 'no record names an auth service any more: every mapping is open');
  }

  function report(found: readonly ConfigurationError[], stays: string): void {
    const told = `the configuration is broken, ${stays}:\n${formatErrors(found, resolve('.'))}`;
    logger.error({ errors: found.length, generation: current.number }, told);
  }

  return Object.freeze({
    current: () => current,
    errors: () => errors,
    notices: () => notices,
    follow: (follower: Follower) => void followers.push(follower),
    onRead: (listener: ReadListener) => void listeners.push(listener),
    async watch() {
      if (errors.length > 0) report(errors, 'the rest of it is served');
      if (configDirectory === undefined) return;
      watching = watchConfiguration({
        directory: configDirectory,
        gatewayDomain: settings.gatewayDomain,
        initial: settled.loaded,
        onChange: read,
        onError: (error) => logger.error({ err: error }, 'the configuration could not be watched or read anew'),
      });
      await watching;
    },
    async close() {
      await (await watching)?.close();
    },
  });
}

/** Throws an Error fit for a terminal when a record names a part of this process that cannot play its own. */
function firstOf(settled: Settled): LoadedConfiguration {
  const { configuration, loaded } = settled;
  const refused = misnamedRecords(settled, configuration);
  if (refused.length > 0) throw new Error(formatErrors(refused, resolve('.')));
  return loaded;
}

/** What is good of the files, and in place of the rest what is in force. */
function admit(loaded: LoadedConfiguration, settled: Settled, inForce: Configuration): LoadedConfiguration {
  const directory = settled.configDirectory ?? '';
  const good = keepGood(directory, withoutExposedUsers(loaded, inForce, settled), inForce);
  const refused = misnamedRecords(settled, good.configuration);
  if (refused.length === 0) return good;
  const configuration = withoutRecords(good.configuration, refused);
  return keepGood(directory, { ...good, configuration, errors: [...good.errors, ...refused] }, inForce);
}

/** What the records say is right as far as it can be checked, and still one part of the process does not work with it. */
function unfitError(thrown: unknown, { configDirectory = '' }: Settled): ConfigurationError {
  return {
    source: { file: configDirectory, line: 1 },
    record: undefined,
    message: `it cannot be put into force: ${thrown instanceof Error ? thrown.message : String(thrown)}`,
    remedy: 'Undo the last change, or restart to see whether it works from the start.',
  };
}

function generationOf(configuration: Configuration, number: number, appliedAtMs: number): Generation {
  let hash: string | undefined;
  return Object.freeze({
    number,
    hash: () => {
      hash ??= hashOf(configuration);
      return hash;
    },
    appliedAtMs,
    configuration,
  });
}

function hashOf(configuration: Configuration): string {
  const said = JSON.stringify(configuration, (_key, value) => (isSource(value) ? undefined : value));
  return createHash('sha256').update(said).digest('hex').slice(0, 12);
}

/** Where a record stands is no part of what it says: replicas may have their directories elsewhere. */
function isSource(value: unknown): boolean {
  return typeof value === 'object' && value !== null && 'file' in value && 'line' in value;
}

/** A server that is open to the network goes on with the users that it had. */
function withoutExposedUsers(
  loaded: LoadedConfiguration,
  previous: Configuration,
  { settings, configDirectory = '' }: Settled,
): LoadedConfiguration {
  const exposed = exposedDemoUsers(settings, loaded.configuration.users);
  if (exposed.length === 0) return loaded;
  const error: ConfigurationError = {
    source: { file: `${configDirectory}/users.yaml`, line: 1 },
    record: undefined,
    message: `everybody knows the passwords of the demo users ${exposed.join(' and ')}, and HOST=${settings.host} is open to the network`,
    remedy: 'Give them passwords of your own (frontdesk hash-password), or set ALLOW_DEMO_USERS=true.',
  };
  const configuration = { ...loaded.configuration, users: previous.users };
  return { ...loaded, configuration, errors: [...loaded.errors, error] };
}
