/** The options and the result of `createFrontdesk`. Validates the options and fills in the defaults. */
import type { RequestListener } from 'node:http';
import { resolve } from 'node:path';
import { inspect } from 'node:util';
import type Koa from 'koa';
import type { Middleware } from 'koa';
import * as z from 'zod';
import {
  type Configuration,
  type ConfigurationError,
  type ConfigurationRecords,
  fileError,
  type LoadedConfiguration,
  processNotices,
  readSettingsFile,
  requireConfiguration,
  requireSettings,
  settingsFile,
  suggestion,
  variables,
} from '#config';
import type { Explain } from '#explain';
import { type CountingLogger, createSafeLogger, fromLevel, isMap, type Logger, silentLogger } from '#foundation';
import { type AnyApp, serviceFault, type UpgradeListener } from '#http';
import type { ClusterContents } from '#kubernetes';
import {
  chooseModules,
  type ModuleName,
  moduleNames,
  noticeContextOf,
  type SettingOptions,
  type Settings,
  settingTable,
} from '#server/product';
import type { TraceVariables } from '#tracing';
import { type ClusterAddresses, createClusterAddresses } from './kubernetes/addresses.ts';
import { filesOf } from './kubernetes/with-cluster.ts';

/** The settings in camelCase, and options that only a program can provide. */
export interface FrontdeskOptions extends SettingOptions {
  /** A directory, or parsed records. @default './config' */
  readonly config?: string | ConfigurationRecords | undefined;
  /** The modules of this process. @default all with `demo`, otherwise the gateway and those that the records name */
  readonly only?: readonly ModuleName[] | undefined;
  /** Runs the demo: its services, with the configuration's demo data in an empty database. @default false */
  readonly demo?: boolean | undefined;
  /**
   * Also responds to `/` below the mount path of an embedded desk, if no mapping matches it: with the page that lists the
   * routes and the API docs. @default false
   */
  readonly landingPage?: boolean | undefined;
  /** pino, or a logger with the same functions. Its level applies, or `logLevel` if that is higher. @default silent */
  readonly logger?: Logger | undefined;
  /**
   * Services that the program itself provides, by the name that mappings use. A service sees the path as the mapping
   * rewrites it. As with koa-mount, only the middleware of an app is used: `keys`, `context`, `proxy` and the `error`
   * event are those of the outer app. An app is read once, so add its middleware first.
   * @default {}
   */
  readonly services?: Readonly<Record<string, AnyApp | Middleware>> | undefined;
  /** Returns milliseconds since the epoch. @default Date.now */
  readonly clock?: (() => number) | undefined;
  /** Does not watch files and does not check the health of services. Useful for `explain` only. @default false */
  readonly dormant?: boolean | undefined;
}

export interface Listening {
  readonly host: string;
  readonly port: number;
  readonly url: string;
}

/** Undefined for modules that do not run here. Without the gateway module, `gateway` serves the other HTTP modules. */
export interface Listeners {
  readonly gateway: Listening | undefined;
  /** The gateway over HTTPS for Gateways of a cluster, if `tlsPort` is set. */
  readonly gatewayTls: Listening | undefined;
  /** The port that redirects to HTTPS, if `httpRedirectPort` is set. */
  readonly redirect: Listening | undefined;
  readonly ratelimit: Listening | undefined;
  /** The rate-limit service over HTTP, if `ratelimitHttpPort` is set. */
  readonly ratelimitHttp: Listening | undefined;
  readonly auth: Listening | undefined;
  /** Metrics and probes without credentials, if `adminPort` is set. */
  readonly admin: Listening | undefined;
}

export interface Frontdesk {
  /** A Koa app that contains only `middleware`. */
  readonly app: Koa;
  /** Middleware for another Koa app, to be mounted under any prefix. It responds to every request. */
  readonly middleware: Middleware;
  /**
   * Creates a listener for the `upgrade` event of the program's own server, needed for mappings with `allow_upgrade`, and
   * for the `connect` event of a server of node:http2 with `settings: { enableConnectProtocol: true }`.
   * Such requests are passed to `handler`, which must reach `middleware`, as the `callback()` of the outer app does.
   * `close` ends the upgraded connections. Throws TypeError if `handler` is not a function.
   * @default app.callback()
   */
  readonly upgradesThrough: (handler?: RequestListener) => UpgradeListener;
  /** Shows how a request would be handled, without calling services. Throws a Problem if the request is invalid. */
  readonly explain: Explain;
  /** The names of users who have the published passwords of the demo. */
  readonly demoUsers: readonly string[];
  /** Returns the same listeners when called again. If it rejects, with a user-facing Error, no port is open. */
  readonly listen: () => Promise<Listeners>;
  /**
   * Reads the configuration directory now, without waiting for the file watcher, and the TLS certificate with its key,
   * for new connections. Logs errors in them. Records that the program passed were copied at the start: to change them,
   * create another desk.
   */
  readonly reload: () => Promise<void>;
  /**
   * Stops accepting requests, waits for requests in flight, and closes everything in reverse order. If closing a part
   * fails, it still closes the others, then rejects with the error. Later requests from an outer app get 503
   * `not-ready`. May be called again.
   */
  readonly close: (options?: CloseOptions) => Promise<void>;
}

export interface CloseOptions {
  /**
   * How long to wait for requests in flight: less than the setting if the program has used up part of its own time
   * limit, `Infinity` for no limit.
   * @default the setting `shutdownTimeoutMs`
   */
  readonly withinMs?: number | undefined;
}

/** The options with all defaults filled in. */
export interface Setup {
  readonly settings: Settings;
  /** The configuration at the start, with the errors that were found in it. Without the records of a cluster. */
  readonly loaded: LoadedConfiguration;
  /** The directory that the configuration was read from. Undefined when a program provided the records. */
  readonly configDirectory: string | undefined;
  readonly logger: CountingLogger;
  readonly clock: () => number;
  readonly services: Readonly<Record<string, AnyApp | Middleware>>;
  readonly demo: boolean;
  readonly landingPage: boolean;
  readonly dormant: boolean;
  /** The addresses of a cluster's Services. Undefined if the records do not come from a cluster. */
  readonly clusterAddresses: ClusterAddresses | undefined;
  /** What a dormant process has read of the cluster. Without it, it reads the cluster when it is opened. */
  readonly clusterContents?: ClusterContents | undefined;
  /** OpenTelemetry's own, of a process that may export its spans. */
  readonly traceVariables?: TraceVariables;
  readonly has: (name: ModuleName) => boolean;
  /** Whether an option selected the modules, not the records at the start alone. */
  readonly areModulesChosen: boolean;
  /** Reports what is suspicious about a configuration in this process, in addition to the notices about its files. */
  readonly notices: (configuration: Configuration) => Promise<readonly ConfigurationError[]>;
}

/** Rejects with an Error whose message says what is wrong, where, and how to fix it. */
export async function resolveOptions(options: FrontdeskOptions): Promise<Setup> {
  requireOptions(options);
  const {
    config: given,
    only,
    demo = false,
    landingPage = false,
    logger: givenLogger = silentLogger,
    services = {},
    clock = Date.now,
    dormant = false,
    ...rest
  } = options;
  const settings = requireSettings(settingTable, rest, Object.keys(programOptions));
  const safe = createSafeLogger(givenLogger);
  // The default level applies only to the command line, because the logger of a program has its own.
  const logger = rest.logLevel === undefined ? safe : fromLevel(safe, rest.logLevel);
  const config = filesOf(given, settings);
  const loaded = await requireConfiguration(config, settings);
  const configDirectory = typeof config === 'object' ? undefined : (config ?? settings.configDir);
  const modules = chooseModules({ only, demo }, loaded.configuration, settings);
  const has = (name: ModuleName) => modules.includes(name);
  const areModulesChosen = demo || only !== undefined || settings.kubernetes;
  const context = noticeContextOf(modules, settings, { isChosen: areModulesChosen, directory: configDirectory });
  const unread = unreadSettingNotices(configDirectory, rest);
  const notices = async (found: Configuration) => [
    ...unread,
    // Records of a cluster come and go, and there are none before it has been read.
    ...(settings.kubernetes ? [] : unusedServiceNotices(services, found)),
    ...(await processNotices(found, context)),
  ];
  return {
    settings,
    loaded,
    configDirectory,
    logger,
    clock,
    services,
    demo,
    landingPage,
    dormant,
    clusterAddresses: settings.kubernetes ? createClusterAddresses() : undefined,
    has,
    areModulesChosen,
    notices,
  };
}

/**
 * Reports services of the program that no record uses. The cause may be a misspelt name in a record, which then means a
 * network host.
 */
function unusedServiceNotices(services: Setup['services'], configuration: Configuration): ConfigurationError[] {
  const { mappings, authServices } = configuration;
  const used = new Set([...mappings.map(({ service }) => service), ...authServices.map((one) => one.authService)]);
  const missing = [...used].filter((name) => !Object.hasOwn(services, name));
  return Object.keys(services)
    .filter((name) => !used.has(name))
    .map((name) => {
      const meant = suggestion(name, missing);
      const remedy =
        meant === undefined
          ? `Add a Mapping with \`service: ${name}\`, or remove the service.`
          : `Did you mean "${meant}", which a record names? Call the service that, or write \`service: ${name}\`.`;
      return fileError('<options>', `no record uses "${name}", a service that this program provides`, remedy, 1);
    });
}

/** Reports settings in `settings.env` that the program does not pass. Only the command line applies this file. */
function unreadSettingNotices(directory: string | undefined, options: SettingOptions): ConfigurationError[] {
  if (directory === undefined) return [];
  const inFile = settingsIn(directory);
  const unread = variables(settingTable).flatMap(([variable, name]) =>
    inFile[variable] && Reflect.get(options, name) === undefined ? [name] : [],
  );
  if (unread.length === 0) return [];
  const [are, them] = unread.length === 1 ? ['is', 'it'] : ['are', 'them'];
  const message = `${unread.join(' and ')} ${are} not in effect, because the library does not read this file`;
  return [fileError(resolve(directory, settingsFile), message, `Pass ${them} to createFrontdesk.`)];
}

/** A file that cannot be read has no settings: its errors are for the command line. */
function settingsIn(directory: string): Readonly<Record<string, string | undefined>> {
  try {
    return readSettingsFile(settingTable, directory);
  } catch {
    return {};
  }
}

const knownModules = moduleNames.join(', ');

/** Checks the options that are not settings, for programs in JavaScript. */
const programOptions = {
  config: z.custom(
    (value) => value !== '' && (typeof value === 'string' || (typeof value === 'object' && value !== null)),
    'expected a directory, or records as { records: [{ apiVersion: gateway/v1, kind: Mapping, … }] }',
  ),
  only: z
    .array(
      z.enum(moduleNames, {
        error: ({ input }) => `${inspect(input)} is not a module: choose from ${knownModules}`,
      }),
      `expected a list such as ['gateway', 'auth']: choose from ${knownModules}`,
    )
    .min(1, `[] leaves nothing to run: choose from ${knownModules}`),
  demo: z.boolean('expected true or false'),
  landingPage: z.boolean('expected true or false'),
  logger: z.custom(isLogger, 'expected a logger such as pino, with the functions info, warn and error'),
  services: z
    .custom(isPlainObject, 'expected Koa apps or middleware by name, such as { tickets: app }')
    .superRefine(addServiceFaults),
  clock: z.custom(isClock, 'expected a function that returns milliseconds, such as Date.now'),
  dormant: z.boolean('expected true or false'),
  threads: z.undefined('only `frontdesk serve` has several threads: remove it'),
};

/** Loose, because `requireSettings` checks the settings. */
const optionsSchema = z.looseObject(
  z.object(programOptions).partial().shape,
  'expected an object such as { config, port }',
);

function requireOptions(options: unknown): void {
  const { error } = optionsSchema.safeParse(options);
  if (error === undefined) return;
  const faults = error.issues.map(({ path: [name = 'the options'], message }) => `${String(name)}: ${message}`);
  throw new Error(faults.join('\n'));
}

function isLogger(value: unknown): boolean {
  return ['info', 'warn', 'error'].every((level) => isMap(value) && typeof value[level] === 'function');
}

/** Rejects a clock that returns a Date, a promise or a string: limits could not be computed with it. */
function isClock(value: unknown): boolean {
  return typeof value === 'function' && Number.isFinite(value());
}

/** Excludes a Map, a Set or a promise, whose services would silently be ignored. */
function isPlainObject(value: unknown): boolean {
  if (!isMap(value)) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

function addServiceFaults(services: unknown, context: z.RefinementCtx): void {
  const known: readonly string[] = moduleNames;
  for (const [name, service] of Object.entries(isMap(services) ? services : {})) {
    const fault = known.includes(name) ? 'is the name of a module: choose another' : serviceFault(service);
    if (fault !== undefined) context.addIssue(`"${name}" ${fault}`);
  }
}

/** Replaces environment variables in an error message by the options that a program sets, such as `PORT` by `port`. */
export async function withOptionNames<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    const message = replaceVariables(error.message);
    // A new error, because the stack of the original contains its message.
    throw message === error.message ? error : new Error(message, { cause: error.cause });
  }
}

/** Replaces environment variables by options in warnings and errors. The functions of `logger` must not need `this`. */
export function loggerWithOptionNames(logger: CountingLogger): CountingLogger {
  return Object.freeze({
    ...logger,
    warn: (fields: object, message = '') => logger.warn(fields, replaceVariables(message)),
    error: (fields: object, message = '') => logger.error(fields, replaceVariables(message)),
  });
}

function replaceVariables(text: string): string {
  return text.replace(variablePattern, (name) => optionOf.get(name) ?? name);
}

/** CONFIG_DIR is not among the setting options, because `config` can also contain records. */
const optionOf: ReadonlyMap<string, string> = new Map([...variables(settingTable), ['CONFIG_DIR', 'config']]);

/** Matches names between spaces or before punctuation, but not upper-case words in paths or quotes. */
const variablePattern = /(?<=^|\s)[A-Z][A-Z_]*(?=[\s=,.:]|$)/gm;
