/** Opens the listeners together or not at all, and closes them in reverse order. */
import { X509Certificate } from 'node:crypto';
import type { RequestListener } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { demoModules, isLoopback, loadTls, type Settings, type Tls } from '#config';
import {
  type ConnectionLimit,
  createUpgrades,
  type HttpServer,
  type HttpServerOptions,
  listenError,
  serveHttp,
  type UpgradeListener,
  type Upgrades,
} from '#http';
import { type Limiter, serveRateLimit } from '#ratelimit';
import type { Listeners, Listening, Setup } from './options.ts';
import type { Pipeline } from './pipeline.ts';
import type { RateLimiting } from './rate-limiting.ts';
import type { LiveConfiguration } from './reload.ts';

export interface ListenersParts {
  readonly configuration: LiveConfiguration;
  readonly pipeline: Pipeline;
  readonly rateLimiting: RateLimiting;
  /** For the gateway's listener; undefined: plain HTTP. */
  readonly tls: Tls | undefined;
  readonly connectionLimit: ConnectionLimit;
  readonly timeLeft: TimeLeft;
  /** Filled with `host:port` by the names that records use, for as long as they listen. */
  readonly listenerAddresses: Map<string, string>;
}

/** How many milliseconds are left for the stop, from the first call on. */
export type TimeLeft = () => number;

export interface ListenerSet {
  /** Opens them once, however often it is called; when that fails it can be called again. Rejects after `close`. */
  readonly open: () => Promise<Listeners>;
  /** For a host's own server: upgrades to the protocols that any mapping in force allows. */
  readonly upgradesThrough: (handler: RequestListener) => UpgradeListener;
  /** Reads certificate and key again, for new connections. What cannot be used is logged, and the one before stays. */
  readonly renewCertificate: () => Promise<void>;
  /** Waits until load balancers have noticed that the process is not ready any more; not when nothing listens. */
  readonly drain: () => Promise<void>;
  /** Closes all of them even when one fails; then it rejects with that error. */
  readonly close: () => Promise<void>;
}

export function createListeners(setup: Setup, parts: ListenersParts): ListenerSet {
  const { connectionLimit } = parts;
  const isAllowed = createAllowsUpgrade(setup, parts.configuration);
  // The other half is for requests.
  const upgrades = createUpgrades(isAllowed, Math.floor(connectionLimit.counts().max / 2));
  let { tls } = parts;
  let gateway: Pick<HttpServer, 'renew'> | undefined;
  let opened = new AsyncDisposableStack();
  let opening: Promise<Listeners> | undefined;
  let isClosed = false;

  async function release(): Promise<void> {
    const closers = opened;
    opened = new AsyncDisposableStack();
    parts.listenerAddresses.clear();
    await closers.disposeAsync();
  }

  async function openOrRelease(): Promise<Listeners> {
    try {
      return await openAll(setup, { ...parts, tls, upgrades, onGateway }, opened);
    } catch (error) {
      await release();
      opening = undefined;
      throw error;
    }
  }

  function onGateway(server: HttpServer): void {
    gateway = server;
  }

  return Object.freeze({
    upgradesThrough: upgrades.listener,
    async renewCertificate() {
      await opening?.catch(() => {});
      try {
        const found = await loadTls(setup.settings);
        if (found === undefined || isDeepStrictEqual(found, tls)) return;
        tls = found;
        gateway?.renew(found);
        const { validTo } = new X509Certificate(found.cert);
        setup.logger.info({ validTo }, 'certificate reloaded');
      } catch (err) {
        setup.logger.error({ err }, 'the certificate cannot be reloaded, the one before stays in force');
      }
    },
    async open() {
      if (isClosed) throw new Error('this frontdesk is closed: make another one with createFrontdesk');
      opening ??= openOrRelease();
      return opening;
    },
    async drain() {
      isClosed = true;
      const isOpen = await opening?.catch(() => undefined);
      const { drainMs } = setup.settings;
      if (isOpen !== undefined && drainMs > 0) await delay(drainMs);
    },
    async close() {
      isClosed = true;
      // What is being opened can be closed only when it is open.
      await opening?.catch(() => {});
      await Promise.all([release(), upgrades.close(parts.timeLeft())]);
    },
  });
}

/** Without the gateway module there are no mappings, and every request is an ordinary one. */
function createAllowsUpgrade({ has }: Setup, configuration: LiveConfiguration): (protocol: string) => boolean {
  let allowed: ReadonlySet<string> = new Set();
  configuration.onChange(({ mappings }) => {
    const next = new Set(has('gateway') ? mappings.flatMap(({ allowUpgrade }) => allowUpgrade) : []);
    return () => {
      allowed = next;
    };
  });
  return (protocol) => allowed.has(protocol);
}

/** Adds how each listener closes to `opened`. */
async function openAll(
  setup: Setup,
  parts: ListenersParts & { readonly upgrades: Upgrades; readonly onGateway: (server: HttpServer) => void },
  opened: AsyncDisposableStack,
): Promise<Listeners> {
  const { settings, has, logger } = setup;
  const { pipeline, rateLimiting, tls, upgrades, connectionLimit } = parts;
  const places = placesOf(settings);
  const closeServices: (() => Promise<void>)[] = [];
  const settingsOfPlaces = new Map<string, string>();

  /** Adds a listener; records may name it as a service. */
  function add(name: ListenerName, scheme: string, server: Opened): Listening {
    const { host, portSetting } = places[name];
    settingsOfPlaces.set(`${host} ${server.port}`, portSetting);
    const isService = name !== 'gateway' && name !== 'admin';
    const close = () => server.close(parts.timeLeft());
    if (isService) closeServices.push(close);
    else opened.defer(close);
    const authority = `${hostForClients(host)}:${server.port}`;
    if (isService) warnOfPlainText(setup, name, host);
    if (name !== 'admin') parts.listenerAddresses.set(name, authority);
    return { host, port: server.port, url: `${scheme}://${authority}` };
  }

  /** Undefined without a port or a handler. */
  async function http(
    name: ListenerName,
    handler: RequestListener | undefined,
    more: Pick<HttpServerOptions, 'tls' | 'upgrades' | 'connectionLimit'> = {},
  ): Promise<Listening | undefined> {
    const { port, ...place } = places[name];
    if (port === undefined || handler === undefined) return undefined;
    const other = settingsOfPlaces.get(`${place.host} ${port}`);
    if (other !== undefined)
      throw new Error(`${other} and ${place.portSetting} are both ${port}: give one of them another port`);
    const answerIdleTimeoutMs = settings.upstreamIdleTimeoutMs;
    const server = await serveHttp({
      ...{ ...settings, ...place, port, handler, answerIdleTimeoutMs, connectionLimit, logger },
      ...more,
    });
    if (name === 'gateway') parts.onGateway(server);
    return add(name, more.tls === undefined ? 'http' : 'https', server);
  }

  // First, and so the last to close: requests in flight can be watched to their end. And beside the limit, so that the
  // server can be watched while the connections of its clients are at the limit.
  const admin = await http('admin', pipeline.admin.callback(), { connectionLimit: undefined });
  // These close after the gateway, whose requests may still ask them.
  opened.defer(() => together(closeServices));
  const { limiter } = rateLimiting;
  const limits = limiter && (await openRateLimit(setup, { ...rateLimiting, limiter }, connectionLimit));
  const ratelimit = limits && add('ratelimit', 'grpc', limits);
  const ratelimitHttp = await http('ratelimit-http', rateLimiting.http);
  const auth = await http('auth', has('auth') ? pipeline.auth.callback() : undefined);
  const gateway = await http('gateway', servesHttp(setup) ? pipeline.own.callback() : undefined, { tls, upgrades });
  // Before any listener closes, gRPC health reports that this process stops, while requests in flight finish.
  opened.defer(() => limits?.leave());
  return { ratelimit, ratelimitHttp, auth, gateway, admin };
}

/** Warns of a port without encryption that other machines reach: it carries passwords, or decisions that others could forge. */
function warnOfPlainText({ logger }: Setup, listener: ListenerName, host: string): void {
  if (isLoopback(host)) return;
  const remedy = 'keep it within your network, or set AUTH_HOST or RATELIMIT_HOST to a loopback address';
  logger.warn({ listener, host }, `a port without encryption is open to the network: ${remedy}`);
}

type ListenerName = 'gateway' | 'ratelimit' | 'ratelimit-http' | 'auth' | 'admin';

/** Where a listener is, and the settings that say so. */
interface Place {
  readonly host: string;
  /** Undefined: there is none. */
  readonly port: number | undefined;
  readonly hostSetting: string;
  readonly portSetting: string;
}

function placesOf({ host, port, ...settings }: Settings): Readonly<Record<ListenerName, Place>> {
  const { ratelimitHost = host, authHost = host, adminHost = host } = settings;
  const place = (name: string, at: string, chosen: number | undefined, of = name): Place => {
    const hostSetting = at === host ? 'HOST' : `${of}_HOST`;
    return { host: at, port: chosen, hostSetting, portSetting: `${name}_PORT` };
  };
  return {
    gateway: { host, port, hostSetting: 'HOST', portSetting: 'PORT' },
    ratelimit: place('RATELIMIT', ratelimitHost, settings.ratelimitPort),
    'ratelimit-http': place('RATELIMIT_HTTP', ratelimitHost, settings.ratelimitHttpPort, 'RATELIMIT'),
    auth: place('AUTH', authHost, settings.authPort),
    admin: place('ADMIN', adminHost, settings.adminPort),
  };
}

/** Waits for all of them; then it rejects with the error of the first that failed. */
async function together(closers: readonly (() => Promise<void>)[]): Promise<void> {
  const closed = await Promise.allSettled(closers.map((close) => close()));
  const failed = closed.find(({ status }) => status === 'rejected');
  if (failed?.status === 'rejected') throw failed.reason;
}

function servesHttp({ has, services }: Setup): boolean {
  return has('gateway') || demoModules.some(has) || Object.keys(services).length > 0;
}

interface Opened {
  readonly port: number;
  readonly close: (deadlineMs: number) => Promise<void>;
}

/** How often gRPC health is set to whether the limiter can decide. */
const healthEveryMs = 1000;

/** `leave`: its health reports that it stops, while it still answers. */
async function openRateLimit(
  { settings, logger }: Setup,
  { limiter, onRefused, isReady }: Pick<RateLimiting, 'onRefused' | 'isReady'> & { readonly limiter: Limiter },
  { admit }: ConnectionLimit,
): Promise<Opened & { readonly leave: () => void }> {
  const { port = 0, ...place } = placesOf(settings).ratelimit;
  const { host } = place;
  const server = await serveRateLimit({ limiter, host, port, logger, onRefused, admit }).catch((error) => {
    // Without the system's error it is another one, of loading the library.
    throw error.cause === undefined ? error : listenError(error.cause, { ...place, port });
  });
  const report = () => server.setServing(isReady());
  report();
  const timer = setInterval(report, healthEveryMs).unref();
  return {
    port: server.port,
    leave: () => server.setServing(false),
    close(deadlineMs) {
      clearInterval(timer);
      return server.close(deadlineMs);
    },
  };
}

/** A listener on every address is reached at the loopback address. */
function hostForClients(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1';
  if (host === '::') return '[::1]';
  return host.includes(':') ? `[${host}]` : host;
}
