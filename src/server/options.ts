/** The options that a host hands in, checked and completed once, and what it gets for them. */
import type { RequestListener } from 'node:http';
import { inspect } from 'node:util';
import type Koa from 'koa';
import type { Middleware } from 'koa';
import * as z from 'zod';
import {
  type Configuration,
  type ConfigurationError,
  type ConfigurationRecords,
  chooseModules,
  type LoadedConfiguration,
  type ModuleName,
  moduleNames,
  processNotices,
  requireConfiguration,
  requireSettings,
  type SettingOptions,
  type Settings,
  type Work,
} from '#config';
import type { Explain } from '#explain';
import { type CountingLogger, createSafeLogger, type Logger, silentLogger, type UpgradeListener } from '#http';

/** The settings, in camelCase, and what only a program can hand in. */
export interface FrontdeskOptions extends Omit<SettingOptions, 'configDir'> {
  /** A directory, or records that are already parsed. @default './config' */
  readonly config?: string | ConfigurationRecords | undefined;
  /** Which modules run in this process. @default with `demo` all of them, otherwise the gateway and those that the records name */
  readonly only?: readonly ModuleName[] | undefined;
  /** Runs the demo: its services, with the configuration's demo data in an empty database. @default false */
  readonly demo?: boolean | undefined;
  /** pino, or anything of its shape. @default silent */
  readonly logger?: Logger | undefined;
  /**
   * The host's own services by the name that mappings use; each sees its path as the mapping rewrites it. Of an app only the
   * middleware runs, as below koa-mount: `keys`, `context`, `proxy` and the `error` event are those of the app around it.
   * @default {}
   */
  readonly services?: Readonly<Record<string, Koa | Middleware>> | undefined;
  /** Milliseconds since the epoch. @default Date.now */
  readonly clock?: (() => number) | undefined;
  /** For `explain` alone: watches no file and checks the health of no service. @default false */
  readonly dormant?: boolean | undefined;
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
  /**
   * Reads the configuration directory now, without waiting for its change to be noticed, and the certificate with its key,
   * which new connections then see. What is wrong with them is logged.
   */
  readonly reload: () => Promise<void>;
  /**
   * Stops accepting, lets requests in flight finish, and closes everything in reverse order, all of it even when a part
   * fails; then it rejects with that error. What a host sends afterwards reads 503 `not-ready`. May be called again.
   */
  readonly close: (options?: CloseOptions) => Promise<void>;
}

export interface CloseOptions {
  /**
   * How long requests in flight have; less than the setting when other parts of the program have taken of the same time,
   * `Infinity` when all of them may finish.
   * @default the setting `shutdownTimeoutMs`
   */
  readonly withinMs?: number | undefined;
}

/** The options with every default filled in, and the configuration as it was at the start. */
export interface Setup {
  readonly settings: Settings;
  readonly configuration: Configuration;
  /** The configuration as it was read, with its errors. */
  readonly loaded: LoadedConfiguration;
  /** Where the configuration was read from; undefined: a program handed it in. */
  readonly configDirectory: string | undefined;
  readonly logger: CountingLogger;
  readonly clock: () => number;
  readonly services: Readonly<Record<string, Koa | Middleware>>;
  readonly demo: boolean;
  readonly dormant: boolean;
  readonly has: (name: ModuleName) => boolean;
  /** What is odd about a configuration in this process, beside what its files show. */
  readonly notices: (configuration: Configuration) => Work<readonly ConfigurationError[]>;
}

/** Rejects with an Error whose message names what is wrong, where, and the remedy. */
export async function resolveOptions(options: FrontdeskOptions): Promise<Setup> {
  requireOptions(options);
  const {
    config,
    only,
    demo = false,
    logger: given = silentLogger,
    services = {},
    clock = Date.now,
    dormant = false,
    ...rest
  } = options;
  const logger = createSafeLogger(given);
  const settings = requireSettings(rest, Object.keys(ownOptions));
  const loaded = await requireConfiguration(config, settings);
  const configDirectory = typeof config === 'object' ? undefined : (config ?? settings.configDir);
  const { configuration } = loaded;
  const modules = chooseModules({ only, demo }, configuration, settings.serviceAddresses);
  const has = (name: ModuleName) => modules.includes(name);
  const context = {
    modules,
    isChosen: demo || only !== undefined,
    serviceAddresses: settings.serviceAddresses,
    directory: configDirectory,
  };
  const notices = function* (found: Configuration): Work<readonly ConfigurationError[]> {
    return [...uncalledNotices(services, found), ...(yield* processNotices(found, context))];
  };
  return { settings, configuration, loaded, configDirectory, logger, clock, services, demo, dormant, has, notices };
}

/**
 * Reports services of the host that no record names, for example because of a spelling mistake: the record then means a
 * network host of that name.
 */
function uncalledNotices(services: Setup['services'], configuration: Configuration): ConfigurationError[] {
  const { mappings, authServices } = configuration;
  const called = new Set([...mappings.map(({ service }) => service), ...authServices.map((one) => one.authService)]);
  return Object.keys(services)
    .filter((name) => !called.has(name))
    .map((name) => ({
      source: { file: '<options>', line: 1 },
      record: undefined,
      message: `no record names "${name}", a service of this program`,
      remedy: `A Mapping with \`service: ${name}\` leads to it.`,
    }));
}

const knownModules = moduleNames.join(', ');

/** What a program in JavaScript may get wrong, in words, for each option that is no setting. */
const ownOptions = {
  config: z.custom(
    (value) => typeof value === 'string' || (typeof value === 'object' && value !== null),
    'expected a directory, or records as { records: [{ apiVersion: gateway/v1, kind: Mapping, … }] }',
  ),
  only: z
    .array(
      z.enum(moduleNames, {
        error: ({ input }) => `${inspect(input)} is no module: choose from ${knownModules}`,
      }),
      `expected a list such as ['gateway', 'auth']: choose from ${knownModules}`,
    )
    .min(1, `[] leaves nothing to run: choose from ${knownModules}`),
  demo: z.boolean('expected true or false'),
  logger: z.custom(isLogger, 'expected a logger like that of pino, with the functions info, warn and error'),
  services: z
    .custom(isPlain, 'expected Koa apps or middleware by name, such as { tickets: app }')
    .superRefine(addFaults),
  clock: z.custom(isClock, 'expected a function that returns milliseconds, as Date.now does'),
  dormant: z.boolean('expected true or false'),
};

/** The settings beside them are checked on their own. */
const optionsSchema = z.looseObject(z.object(ownOptions).partial().shape, 'expected a map such as { config, port }');

function requireOptions(options: unknown): void {
  const { error } = optionsSchema.safeParse(options);
  if (error === undefined) return;
  const faults = error.issues.map(({ path: [name = 'the options'], message }) => `${String(name)}: ${message}`);
  throw new Error(faults.join('\n'));
}

function isLogger(value: unknown): boolean {
  return ['info', 'warn', 'error'].every((level) => isMap(value) && typeof value[level] === 'function');
}

/** A Date, a promise or a text would leave no limit decided. */
function isClock(value: unknown): boolean {
  return typeof value === 'function' && Number.isFinite(value());
}

function isMap(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A Map, a Set or a promise has no entries, and would mean no services. */
function isPlain(value: unknown): boolean {
  if (!isMap(value)) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

function addFaults(services: unknown, context: z.RefinementCtx): void {
  const known: readonly string[] = moduleNames;
  for (const [name, service] of Object.entries(isMap(services) ? services : {})) {
    if (known.includes(name)) context.addIssue(`"${name}" is the name of a module: choose another`);
    else if (!isAppOrMiddleware(service)) context.addIssue(`"${name}" is neither a Koa app nor a middleware`);
  }
}

function isAppOrMiddleware(service: unknown): boolean {
  return typeof service === 'function' || (isMap(service) && Array.isArray(service['middleware']));
}
