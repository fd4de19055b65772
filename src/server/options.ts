/** The options that a host hands in, checked and completed once, and what it gets for them. */
import type { RequestListener } from 'node:http';
import type Koa from 'koa';
import type { Middleware } from 'koa';
import {
  type Configuration,
  type ConfigurationRecords,
  type LoadedConfiguration,
  type ModuleName,
  moduleNames,
  requireConfiguration,
  requireSettings,
  type SettingOptions,
  type Settings,
} from '#config';
import type { Explain } from '#explain';
import { type Logger, silentLogger, type UpgradeListener } from '#http';

/** The settings, in camelCase, and what only a program can hand in. */
export interface FrontdeskOptions extends Omit<SettingOptions, 'configDir'> {
  /** A directory, or records that are already parsed. @default './config' */
  readonly config?: string | ConfigurationRecords;
  /** Which modules run in this process. @default all of them */
  readonly only?: readonly ModuleName[];
  /** Loads the configuration's demo data into an empty database. @default false */
  readonly demo?: boolean;
  /** pino, or anything of its shape. @default silent */
  readonly logger?: Logger;
  /** The host's own services by the name that mappings use; each sees its path as the mapping rewrites it. @default {} */
  readonly services?: Readonly<Record<string, Koa | Middleware>>;
  /** Milliseconds since the epoch. @default Date.now */
  readonly clock?: () => number;
  /** For `explain` alone: watches no file and checks the health of no service. @default false */
  readonly dormant?: boolean;
}

export interface Listening {
  readonly host: string;
  readonly port: number;
  readonly url: string;
}

/** Undefined for what does not run in this process. Without a gateway, `gateway` serves the other HTTP modules. */
export interface Listeners {
  readonly gateway: Listening | undefined;
  readonly ratelimit: Listening | undefined;
  /** The rate-limit service over HTTP, where the setting `ratelimitHttpPort` asks for it. */
  readonly ratelimitHttp: Listening | undefined;
  readonly auth: Listening | undefined;
  /** Metrics and probes without credentials, where the setting `adminPort` asks for them. */
  readonly admin: Listening | undefined;
}

export interface Frontdesk {
  /** A Koa app that has `middleware` and nothing else. */
  readonly app: Koa;
  /** For another Koa app, mounted under any prefix. It answers every request. */
  readonly middleware: Middleware;
  /**
   * For the `upgrade` event of a host's server, where mappings say `allow_upgrade`: `handler` answers such requests, and
   * must lead to `middleware`, as the `callback()` of the host app does. `close` ends these connections as well.
   * @default app.callback()
   */
  readonly upgradesThrough: (handler?: RequestListener) => UpgradeListener;
  /** What would become of a request; asks no service and counts nothing. Throws a Problem for what no client could send. */
  readonly explain: Explain;
  /** Names of users with the published passwords of the demo. */
  readonly demoUsers: readonly string[];
  /** May be called again, and gives the same listeners. Rejects with a message fit for a terminal; then nothing listens. */
  readonly listen: () => Promise<Listeners>;
  /** Reads the configuration directory now, without waiting for its change to be noticed. What is wrong with it is logged. */
  readonly reload: () => Promise<void>;
  /**
   * Stops accepting, lets requests in flight finish within `shutdownTimeoutMs`, and closes everything in reverse order,
   * all of it even when a part fails; then it rejects with that error. May be called again.
   */
  readonly close: () => Promise<void>;
}

/** The options with every default filled in, and the configuration as it was at the start. */
export interface Setup {
  readonly settings: Settings;
  readonly configuration: Configuration;
  /** The configuration as it was read, with its errors. */
  readonly loaded: LoadedConfiguration;
  /** Where the configuration was read from; undefined: a program handed it in. */
  readonly configDirectory: string | undefined;
  readonly logger: Logger;
  readonly clock: () => number;
  readonly services: Readonly<Record<string, Koa | Middleware>>;
  readonly demo: boolean;
  readonly dormant: boolean;
  readonly has: (name: ModuleName) => boolean;
}

/** Rejects with an Error whose message names what is wrong, where, and the remedy. */
export async function resolveOptions(options: FrontdeskOptions): Promise<Setup> {
  const {
    config,
    only = moduleNames,
    demo = false,
    logger = silentLogger,
    services = {},
    clock = Date.now,
    dormant = false,
    ...rest
  } = options;
  requireModules(only);
  requireServices(services);
  const settings = requireSettings(rest);
  const loaded = await requireConfiguration(config, settings);
  const configDirectory = typeof config === 'object' ? undefined : (config ?? settings.configDir);
  const has = (name: ModuleName) => only.includes(name);
  const { configuration } = loaded;
  return { settings, configuration, loaded, configDirectory, logger, clock, services, demo, dormant, has };
}

function requireModules(only: readonly string[]): void {
  const known: readonly string[] = moduleNames;
  const unknown = only.find((name) => !known.includes(name));
  if (unknown !== undefined) throw new Error(`only: "${unknown}" is no module: choose from ${known.join(', ')}`);
  if (only.length === 0) throw new Error(`only: [] leaves nothing to run: choose from ${known.join(', ')}`);
}

function requireServices(services: Readonly<Record<string, unknown>>): void {
  const known: readonly string[] = moduleNames;
  for (const [name, service] of Object.entries(services)) {
    if (known.includes(name)) throw new Error(`services: "${name}" is the name of a module: choose another`);
    if (!isAppOrMiddleware(service)) throw new Error(`services: "${name}" is neither a Koa app nor a middleware`);
  }
}

function isAppOrMiddleware(service: unknown): boolean {
  if (typeof service === 'function') return true;
  return (
    typeof service === 'object' && service !== null && 'middleware' in service && Array.isArray(service.middleware)
  );
}
