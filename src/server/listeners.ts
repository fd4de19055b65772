/** Opens the listeners together or not at all, and closes them in reverse order. */
import type { RequestListener } from 'node:http';
import type { Tls } from '#config';
import { createUpgrades, type HttpServerOptions, serveHttp, type UpgradeListener, type Upgrades } from '#http';
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
  /** Filled with `host:port` by the names that records use, for as long as they listen. */
  readonly listenerAddresses: Map<string, string>;
}

export interface ListenerSet {
  /** Opens them once, however often it is called; when that fails it can be called again. Rejects after `close`. */
  readonly open: () => Promise<Listeners>;
  /** For a host's own server: upgrades to the protocols that any mapping in force allows. */
  readonly upgradesThrough: (handler: RequestListener) => UpgradeListener;
  /** Closes all of them even when one fails; then it rejects with that error. */
  readonly close: () => Promise<void>;
}

export function createListeners(setup: Setup, parts: ListenersParts): ListenerSet {
  const upgrades = createUpgrades(createAllowsUpgrade(setup, parts.configuration));
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
      return await openAll(setup, { ...parts, upgrades }, opened);
    } catch (error) {
      await release();
      opening = undefined;
      throw error;
    }
  }

  return Object.freeze({
    upgradesThrough: upgrades.listener,
    async open() {
      if (isClosed) throw new Error('this frontdesk is closed: make another one with createFrontdesk');
      opening ??= openOrRelease();
      return opening;
    },
    async close() {
      isClosed = true;
      // What is being opened can be closed only when it is open.
      await opening?.catch(() => {});
      await Promise.all([release(), upgrades.close(setup.settings.shutdownTimeoutMs)]);
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
  parts: ListenersParts & { readonly upgrades: Upgrades },
  opened: AsyncDisposableStack,
): Promise<Listeners> {
  const { settings, has } = setup;
  const { host, port, authPort, ratelimitHttpPort = 0, adminPort, shutdownTimeoutMs } = settings;
  const { pipeline, rateLimiting, tls, upgrades } = parts;

  /** `name`: by which records may mean it as a service. */
  function add(name: string | undefined, scheme: string, server: Opened): Listening {
    opened.defer(() => server.close(shutdownTimeoutMs));
    const authority = `${hostForClients(host)}:${server.port}`;
    if (name !== undefined) parts.listenerAddresses.set(name, authority);
    return { host, port: server.port, url: `${scheme}://${authority}` };
  }

  function http(
    portSetting: string,
    at: number,
    handler: RequestListener,
    more: Pick<HttpServerOptions, 'tls' | 'upgrades'> = {},
  ): Promise<Opened> {
    const answerIdleTimeoutMs = settings.upstreamIdleTimeoutMs;
    return serveHttp({ ...settings, handler, port: at, portSetting, answerIdleTimeoutMs, ...more });
  }

  // First, and so the last to close: requests in flight can be watched to their end.
  const admin =
    adminPort === undefined
      ? undefined
      : add(undefined, 'http', await http('ADMIN_PORT', adminPort, pipeline.admin.callback()));
  const limits = rateLimiting.limiter && (await openRateLimit(setup, rateLimiting.limiter, rateLimiting.isReady));
  const ratelimit = limits && add('ratelimit', 'grpc', limits);
  const ratelimitHttp =
    rateLimiting.http &&
    add('ratelimit-http', 'http', await http('RATELIMIT_HTTP_PORT', ratelimitHttpPort, rateLimiting.http));
  const auth = has('auth')
    ? add('auth', 'http', await http('AUTH_PORT', authPort, pipeline.auth.callback()))
    : undefined;
  const scheme = tls === undefined ? 'http' : 'https';
  const gateway = servesHttp(setup)
    ? add('gateway', scheme, await http('PORT', port, pipeline.gateway.callback(), { tls, upgrades }))
    : undefined;
  // Before any closes: gRPC health says that this process is going, while requests in flight finish.
  opened.defer(() => limits?.leave());
  return { ratelimit, ratelimitHttp, auth, gateway, admin };
}

function servesHttp({ has, services }: Setup): boolean {
  return has('gateway') || has('hotel') || has('car') || has('api') || Object.keys(services).length > 0;
}

interface Opened {
  readonly port: number;
  readonly close: (deadlineMs: number) => Promise<void>;
}

/** How often gRPC health is set to whether the limiter can decide. */
const healthEveryMs = 1000;

/** `leave`: its health says that it is going, while it still answers. */
async function openRateLimit(
  { settings, logger }: Setup,
  limiter: Limiter,
  isReady: () => boolean,
): Promise<Opened & { readonly leave: () => void }> {
  const { host, ratelimitPort: port } = settings;
  const server = await serveRateLimit({ limiter, host, port, logger }).catch((cause: unknown) => {
    throw new Error(`${messageOf(cause)} The settings are HOST and RATELIMIT_PORT.`, { cause });
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

function messageOf(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause);
}

/** A listener on every address is reached at the loopback address. */
function hostForClients(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1';
  if (host === '::') return '[::1]';
  return host.includes(':') ? `[${host}]` : host;
}
