/** Opens all listeners or none, and closes them in reverse order. */
import type { RequestListener } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { type Configuration, hostForClients, isLoopback, openFilesMax, type Tls } from '#config';
import { equalPart, listenError } from '#foundation';
import {
  type ConnectionLimit,
  type ConnectionShare,
  createConnectionLimit,
  createUpgrades,
  type HttpServer,
  type HttpServerOptions,
  serveHttp,
  type UpgradeListener,
  type Upgrades,
  upgradesOfHost,
  waitingMaxDefault,
} from '#http';
import { type Limiter, portBounds, serveRateLimit } from '#ratelimit';
import type { Listeners, Listening, Setup } from './options.ts';
import type { Pipeline } from './pipeline.ts';
import { bindingsOf, type ListenerName, listenersOf, rejectSamePort } from './ports.ts';
import type { RateLimiting } from './rate-limiting.ts';
import type { LiveConfiguration } from './reload.ts';
import { type CurrentTls, servedBy, serverTls } from './tls/certificates.ts';

export interface ListenersParts {
  readonly configuration: LiveConfiguration;
  readonly pipeline: Pipeline;
  readonly rateLimiting: RateLimiting;
  readonly tls: CurrentTls;
  /** For all listeners except the admin port. */
  readonly connectionLimit: ConnectionLimit;
  readonly adminConnectionLimit: ConnectionLimit;
  readonly timeLeft: TimeLeft;
  /** Receives the `host:port` of each open listener, under the name that records use. */
  readonly listenerAddresses: Map<string, string>;
  /** How many threads listen on the same ports. Each has an equal part of their bounds. */
  readonly threads: number;
}

/** Returns how many milliseconds are left until the deadline of the shutdown. The first call sets the deadline. */
export type TimeLeft = () => number;

export interface ListenerSet {
  /** Opens the listeners once, even if it is called again. After a failure it tries again. */
  readonly open: () => Promise<Listeners>;
  /** For the server of an embedding program: allows upgrades to the protocols of all current mappings. */
  readonly upgradesThrough: (handler: RequestListener) => UpgradeListener;
  /** Replaces the certificates for new connections. */
  readonly replaceCertificates: (tls: Tls) => Promise<void>;
  /** Makes `open` reject. If listeners are open, waits for DRAIN_MS, so that load balancers can notice the shutdown. */
  readonly drain: () => Promise<void>;
  /** Call it after `drain`. Closes all listeners even if closing one fails, and then rejects with that error. */
  readonly close: () => Promise<void>;
}

export function createListeners(setup: Setup, parts: ListenersParts): ListenerSet {
  const { connectionLimit, tls } = parts;
  const isAllowed = createAllowsUpgrade(setup, parts.configuration);
  // Upgraded connections may use half of the limit. The other half is reserved for requests.
  const upgrades = createUpgrades(isAllowed, Math.floor(connectionLimit.counts().max / 2));
  const shareOf = createShares(parts);
  let secure: Pick<HttpServer, 'replaceCertificates'> | undefined;
  let opened = new AsyncDisposableStack();
  let opening: Promise<Listeners> | undefined;
  let isClosed = false;

  async function release(): Promise<void> {
    const closers = opened;
    opened = new AsyncDisposableStack();
    parts.listenerAddresses.clear();
    await closers.disposeAsync();
  }

  /** A failed opening closes its listeners too. It must not set the deadline, which belongs to the shutdown. */
  function timeLeft(): number {
    return isClosed ? parts.timeLeft() : setup.settings.shutdownTimeoutMs;
  }

  async function openOrRelease(): Promise<Listeners> {
    try {
      return await openAll(setup, { ...parts, timeLeft, upgrades, shareOf, onSecure }, opened);
    } catch (error) {
      await release();
      opening = undefined;
      throw error;
    }
  }

  function onSecure(server: HttpServer): void {
    secure = server;
  }

  return Object.freeze({
    upgradesThrough(handler: RequestListener) {
      // Checked here, because an error in the listener would end the process at the first upgrade.
      if (typeof handler !== 'function')
        throw new TypeError('upgradesThrough: expected a request listener such as app.callback()');
      return upgradesOfHost(upgrades, handler);
    },
    async replaceCertificates(found: Tls) {
      await opening?.catch(() => {});
      secure?.replaceCertificates(servedBy(found, setup));
      tls.current = found;
    },
    async open() {
      if (isClosed) throw new Error('this frontdesk is closed: create another one with createFrontdesk');
      opening ??= openOrRelease();
      return opening;
    },
    async drain() {
      isClosed = true;
      // Listeners that are being opened can be closed only when they are open.
      const isOpen = await opening?.catch(() => undefined);
      const { drainMs } = setup.settings;
      if (isOpen !== undefined && drainMs > 0) await delay(drainMs);
    },
    async close() {
      await Promise.all([release(), upgrades.close(parts.timeLeft())]);
    },
  });
}

/** Without the gateway module there are no mappings, so no upgrades are allowed. */
function createAllowsUpgrade({ has }: Setup, configuration: LiveConfiguration): (protocol: string) => boolean {
  const protocolsIn = ({ mappings }: Configuration): ReadonlySet<string> =>
    new Set(has('gateway') ? mappings.flatMap(({ allowUpgrade }) => allowUpgrade) : []);
  let allowed = protocolsIn(configuration.current().configuration);
  configuration.onChange((changed) => {
    const next = protocolsIn(changed);
    return () => {
      allowed = next;
    };
  });
  return (protocol) => allowed.has(protocol);
}

/** The open files of a process without clients, for example of the database, the log and Node itself: about 35. */
const ownFiles = 48;
/** Those of each of several threads: about 13. */
const ownFilesOfThread = 16;

/**
 * A request may need two files: its own connection and one to a service. The remaining 10 % are for the admin port and
 * for rejected connections. Each of several threads has an equal part.
 */
export function createConnectionLimits({ settings, logger }: Setup, threads = 1) {
  const own = threads === 1 ? ownFiles : ownFiles + threads * ownFilesOfThread;
  const files = Math.max(0, openFilesMax() - own);
  const fewFiles = Math.max(8, Math.min(100, Math.floor(0.05 * files)));
  const max = settings.connectionsMax ?? Math.max(10, Math.floor(0.45 * files));
  const name = 'the bound of the admin port';
  return {
    connectionLimit: createConnectionLimit({
      max: equalPart(max, threads),
      logger,
      rejectionsMax: equalPart(fewFiles, threads),
    }),
    adminConnectionLimit: createConnectionLimit({ max: fewFiles, logger, name, rejectionsMax: fewFiles }),
  };
}

/**
 * Reserves half of the connections for the gateway, at both of its ports together, and a twentieth for each other open
 * listener, so that clients of one cannot exhaust another. The admin port has a separate limit, so that the server can
 * always be monitored.
 */
function createShares({
  connectionLimit,
  adminConnectionLimit,
}: ListenersParts): (name: ListenerName) => ConnectionShare {
  const shares = new Map<ListenerName, ConnectionShare>();
  const { max } = connectionLimit.counts();
  return (listener) => {
    const name = listener === 'gateway-tls' ? 'gateway' : listener;
    const limit = name === 'admin' ? adminConnectionLimit : connectionLimit;
    const share = shares.get(name) ?? limit.share(Math.floor(name === 'gateway' ? max / 2 : max / 20));
    shares.set(name, share);
    return share;
  };
}

interface OpeningParts extends ListenersParts {
  readonly upgrades: Upgrades;
  readonly shareOf: (name: ListenerName) => ConnectionShare;
  /** Receives the server of HTTPS. */
  readonly onSecure: (server: HttpServer) => void;
}

/** The listeners that serve requests of the gateway's clients. */
const fronts: readonly ListenerName[] = ['gateway', 'gateway-tls', 'redirect'];

/** Pushes the closing function of each listener onto `opened`. */
async function openAll(setup: Setup, parts: OpeningParts, opened: AsyncDisposableStack): Promise<Listeners> {
  const { settings, logger } = setup;
  const { pipeline, rateLimiting, tls, upgrades, shareOf, threads } = parts;
  const bindings = bindingsOf(settings);
  const names = listenersOf(setup);
  const closeServices: (() => Promise<void>)[] = [];
  const closeFronts: (() => Promise<void>)[] = [];
  // Closed last, so that the server can be monitored until its last request has finished.
  const ofAdmin = opened.use(new AsyncDisposableStack());
  const portSettings = new Map<string, string>();

  /** Registers an open listener. */
  function add(name: ListenerName, scheme: string, server: OpenListener): Listening {
    const { host, portSetting } = bindings[name];
    portSettings.set(`${host} ${server.port}`, portSetting);
    const isService = name !== 'admin' && !fronts.includes(name);
    const close = () => server.close(parts.timeLeft());
    if (name === 'admin') ofAdmin.defer(close);
    else (isService ? closeServices : closeFronts).push(close);
    const authority = `${hostForClients(host)}:${server.port}`;
    if (isService) warnIfUnencrypted(setup, name, host);
    if (name === 'gateway') warnAboutPeers(setup, host, scheme);
    // No record names the others, so services with these names are elsewhere.
    if (name !== 'admin' && name !== 'gateway-tls') parts.listenerAddresses.set(name, authority);
    return { host, port: server.port, url: `${scheme}://${authority}` };
  }

  /** Opens an HTTP listener. Undefined without a port or a handler. */
  async function http(
    name: ListenerName,
    handler: RequestListener | undefined,
    overrides: Pick<HttpServerOptions, 'tls' | 'upgrades' | 'proxyProtocolFrom' | 'refusesInGrpc'> = {},
  ): Promise<Listening | undefined> {
    const { port, ...binding } = bindings[name];
    if (port === undefined || handler === undefined) return undefined;
    rejectSamePort(portSettings, bindings[name]);
    const responseIdleTimeoutMs = settings.upstreamIdleTimeoutMs;
    const server = await serveHttp({
      ...settings,
      ...binding,
      port,
      handler,
      responseIdleTimeoutMs,
      connectionShare: shareOf(name),
      logger,
      reusePort: threads > 1,
      waitingMax: equalPart(waitingMaxDefault, threads),
      ...overrides,
    });
    if (overrides.tls !== undefined) parts.onSecure(server);
    return add(name, overrides.tls === undefined ? 'http' : 'https', server);
  }

  // The services close after the gateway, because its requests in flight may still need them.
  opened.defer(() => closeAll(closeServices));
  // All at once, so that the requests of each have all the time that is left.
  opened.defer(() => closeAll(closeFronts));
  const { limiter } = rateLimiting;
  const limits = limiter && (await openRateLimit(setup, { ...rateLimiting, limiter, threads }, shareOf('ratelimit')));
  const ratelimit = limits && add('ratelimit', 'grpc', limits);
  const ratelimitHttp = await http('ratelimit-http', rateLimiting.http);
  const auth = await http('auth', names.includes('auth') ? pipeline.auth.callback() : undefined, {
    refusesInGrpc: false,
  });
  // Behind a gateway, the proxies are gateways, which speak HTTP.
  const proxyProtocolFrom = settings.proxyProtocol && setup.has('gateway') ? settings.trustedProxies : undefined;
  const secure = tls.current && serverTls(tls.current, setup);
  const isApart = settings.tlsPort !== undefined;
  const gatewayHandler = names.includes('gateway') ? pipeline.standalone.callback() : undefined;
  const gateway = await http('gateway', gatewayHandler, {
    tls: isApart ? undefined : secure,
    upgrades,
    proxyProtocolFrom,
  });
  const tlsHandler = names.includes('gateway-tls') ? gatewayHandler : undefined;
  const gatewayTls = await http('gateway-tls', tlsHandler, { tls: secure, upgrades, proxyProtocolFrom });
  const redirectHandler = names.includes('redirect') ? pipeline.redirect.callback() : undefined;
  const redirect = await http('redirect', redirectHandler, { upgrades, proxyProtocolFrom });
  const admin = await http('admin', pipeline.admin.callback());
  // Runs before any listener closes: gRPC health reports NOT_SERVING while requests in flight finish.
  opened.defer(() => limits?.reportStopping());
  return { ratelimit, ratelimitHttp, auth, gateway, gatewayTls, redirect, admin };
}

/** Other machines could read passwords or forge decisions on an unencrypted port that they can reach. */
function warnIfUnencrypted({ logger }: Setup, listener: ListenerName, host: string): void {
  if (isLoopback(host)) return;
  const remedy = 'keep it inside a trusted network, or set AUTH_HOST or RATELIMIT_HOST to a loopback address';
  logger.warn({ listener, host }, `an unencrypted port is open to the network: ${remedy}`);
}

/** Other machines could read passwords at an unencrypted gateway, and pass for any user at a service that believes them. */
function warnAboutPeers({ logger, has, settings }: Setup, host: string, scheme: string): void {
  const isGateway = has('gateway');
  if (isGateway && scheme === 'http' && settings.tlsPort === undefined && (host === '0.0.0.0' || host === '::')) {
    const certificates = settings.kubernetesGatewayApi ? 'TLS_PORT' : 'TLS_CERT and TLS_KEY';
    const remedy = `set ${certificates}, or set HOST to the address at which a proxy with TLS calls it`;
    logger.warn({ listener: 'gateway', host }, `the gateway is open on all addresses without TLS: ${remedy}`);
  }
  if (!isGateway && !isLoopback(host) && settings.trustedProxies.length === 0) {
    const remedy = 'set TRUSTED_PROXIES to the addresses of the gateway';
    logger.warn(
      { host },
      `every client that reaches this port is believed to be a gateway that names the user: ${remedy}`,
    );
  }
}

/** Waits for all closers, then rejects with the first error if there was one. */
async function closeAll(closers: readonly (() => Promise<void>)[]): Promise<void> {
  const closed = await Promise.allSettled(closers.map((close) => close()));
  const failed = closed.find(({ status }) => status === 'rejected');
  if (failed?.status === 'rejected') throw failed.reason;
}

interface OpenListener {
  readonly port: number;
  readonly close: (deadlineMs: number) => Promise<void>;
}

/** How often gRPC health is updated. */
const healthEveryMs = 1000;

interface RateLimitPortParts extends Pick<RateLimiting, 'onRefused' | 'isReady'> {
  readonly limiter: Limiter;
  readonly threads: number;
}

/** `reportStopping` makes gRPC health report NOT_SERVING while the server still responds. */
async function openRateLimit(
  { settings, logger }: Setup,
  { limiter, onRefused, isReady, threads }: RateLimitPortParts,
  { admit, setIdle }: ConnectionShare,
): Promise<OpenListener & { readonly reportStopping: () => void }> {
  const { port = 0, ...binding } = bindingsOf(settings).ratelimit;
  const { host } = binding;
  const { connectionsMax, openMax, arrivingMax } = portBounds;
  const bounds = {
    connectionsMax: equalPart(connectionsMax, threads),
    openMax: equalPart(openMax, threads),
    arrivingMax: equalPart(arrivingMax, threads),
  };
  const options = { limiter, host, port, reusePort: threads > 1, bounds, logger, onRefused, admit, setIdle };
  const server = await serveRateLimit(options).catch((error) => {
    // Only an error from listening has a system error as its cause. Others come from loading the library.
    throw error.cause === undefined ? error : listenError(error.cause, { ...binding, port });
  });
  const report = () => server.setServing(isReady());
  report();
  const timer = setInterval(report, healthEveryMs).unref();
  return {
    port: server.port,
    reportStopping: () => server.setServing(false),
    close(deadlineMs) {
      clearInterval(timer);
      return server.close(deadlineMs);
    },
  };
}
