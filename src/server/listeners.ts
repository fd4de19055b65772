/** The listeners of a process: opened together or not at all, and closed in reverse order. */
import type { RequestListener } from 'node:http';
import { createSecureContext } from 'node:tls';
import type { Settings, Tls } from '#config';
import { type Logger, serveHttp, type Upgrades } from '#http';
import { serveRateLimit } from '#ratelimit';
import type { Listeners, Listening } from './options.ts';
import type { RateLimiting } from './rate-limiting.ts';

export interface ListenersParts {
  readonly settings: Settings;
  readonly logger: Logger;
  /** Undefined: no such listener. */
  readonly rateLimiting: Pick<RateLimiting, 'limiter' | 'http' | 'isReady'>;
  readonly auth: RequestListener | undefined;
  readonly gateway: RequestListener | undefined;
  readonly admin: RequestListener | undefined;
  /** For the gateway's listener alone; who closes the listeners closes these as well. */
  readonly upgrades: Upgrades;
  readonly tls: Tls | undefined;
}

export interface ListenerSet {
  /** Opens them once, however often it is called; when that fails it can be tried again. Rejects after `close`. */
  readonly open: () => Promise<Listeners>;
  /** Where the listener of that name is, as `host:port`, while it is open. */
  readonly addressOf: (name: string) => string | undefined;
  readonly close: () => Promise<void>;
}

export function createListeners(parts: ListenersParts): ListenerSet {
  const { settings } = parts;
  const addresses = new Map<string, string>();
  const closers: ((deadlineMs: number) => Promise<void>)[] = [];
  let opening: Promise<Listeners> | undefined;
  let closed = false;
  /** Tells who balances load by gRPC health that this one is going, while what runs may still finish. */
  let leaveHealth = () => {};

  async function release(): Promise<void> {
    addresses.clear();
    while (closers.length > 0) await closers.pop()?.(settings.shutdownTimeoutMs);
  }

  /** `name`: by which records may mean it as a service. */
  function opened(name: string | undefined, scheme: string, server: Opened): Listening {
    closers.push(server.close);
    if (server.setServing !== undefined) leaveHealth = () => server.setServing?.(false);
    const authority = `${hostForClients(settings.host)}:${server.port}`;
    if (name !== undefined) addresses.set(name, authority);
    return { host: settings.host, port: server.port, url: `${scheme}://${authority}` };
  }

  async function openAll(): Promise<Listeners> {
    const { limiter, http } = parts.rateLimiting;
    // First, and so the last to close: what is still running can be watched to its end.
    const admin = parts.admin && opened(undefined, 'http', await openHttp(settings, parts.admin, 'ADMIN_PORT'));
    const ratelimit = limiter && opened('ratelimit', 'grpc', await openRateLimit(parts, limiter));
    const ratelimitHttp =
      http && opened('ratelimit-http', 'http', await openHttp(settings, http, 'RATELIMIT_HTTP_PORT'));
    const auth = parts.auth && opened('auth', 'http', await openHttp(settings, parts.auth, 'AUTH_PORT'));
    const scheme = parts.tls === undefined ? 'http' : 'https';
    const gateway = parts.gateway && opened('gateway', scheme, await openHttp(settings, parts.gateway, 'PORT', parts));
    return { ratelimit, ratelimitHttp, auth, gateway, admin };
  }

  async function openOrRelease(): Promise<Listeners> {
    try {
      return await openAll();
    } catch (error) {
      await release();
      opening = undefined;
      throw error;
    }
  }

  return Object.freeze({
    async open() {
      if (closed) throw new Error('this desk is closed: make another one with createFrontdesk');
      opening ??= openOrRelease();
      return opening;
    },
    addressOf: (name: string) => addresses.get(name),
    async close() {
      closed = true;
      // What is being opened must be there before it can be closed.
      await opening?.catch(() => {});
      leaveHealth();
      await release();
    },
  });
}

interface Opened {
  readonly port: number;
  readonly setServing?: (serving: boolean) => void;
  readonly close: (deadlineMs: number) => Promise<void>;
}

/** How often gRPC health is told whether there is anybody to count. */
const healthEveryMs = 1000;

async function openRateLimit(
  { settings, logger, rateLimiting }: ListenersParts,
  limiter: NonNullable<RateLimiting['limiter']>,
): Promise<Opened> {
  try {
    const server = await serveRateLimit({ limiter, host: settings.host, port: settings.ratelimitPort, logger });
    const tell = () => server.setServing(rateLimiting.isReady());
    tell();
    const timer = setInterval(tell, healthEveryMs).unref();
    return {
      ...server,
      close(deadlineMs) {
        clearInterval(timer);
        return server.close(deadlineMs);
      },
    };
  } catch (cause) {
    throw new Error(`${messageOf(cause)} The settings are HOST and RATELIMIT_PORT.`, { cause });
  }
}

const portOf = {
  PORT: ({ port }) => port,
  AUTH_PORT: ({ authPort }) => authPort,
  RATELIMIT_HTTP_PORT: ({ ratelimitHttpPort }) => ratelimitHttpPort,
  ADMIN_PORT: ({ adminPort }) => adminPort,
} as const satisfies Record<string, (settings: Settings) => number | undefined>;

type PortSetting = keyof typeof portOf;

async function openHttp(
  settings: Settings,
  handler: RequestListener,
  portSetting: PortSetting,
  { tls, upgrades }: Partial<Pick<ListenersParts, 'tls' | 'upgrades'>> = {},
): Promise<Opened> {
  const port = portOf[portSetting](settings) ?? 0;
  if (tls !== undefined) requireKeyPair(tls);
  const answerIdleTimeoutMs = settings.upstreamIdleTimeoutMs;
  return serveHttp({ ...settings, handler, port, portSetting, tls, upgrades, answerIdleTimeoutMs });
}

/** OpenSSL's own words name neither the settings nor the way out. */
function requireKeyPair(tls: Tls): void {
  try {
    createSecureContext(tls);
  } catch (cause) {
    const remedy = 'name a certificate chain and the private key that belongs to it, both PEM and without a passphrase';
    throw new Error(`TLS_CERT and TLS_KEY cannot be used (${messageOf(cause)}): ${remedy}`, { cause });
  }
}

function messageOf(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause);
}

/** A listener on every address is reached by the loopback one. */
function hostForClients(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1';
  if (host === '::') return '[::1]';
  return host.includes(':') ? `[${host}]` : host;
}
