/** The three listeners of a process: opened together or not at all, and closed in reverse order. */
import type { RequestListener } from 'node:http';
import { createSecureContext } from 'node:tls';
import type { Settings, Tls } from '#config';
import { type Logger, serveHttp } from '#http';
import { type Limiter, serveRateLimit } from '#ratelimit';
import type { Listeners, Listening } from './options.ts';

export interface ListenersParts {
  readonly settings: Settings;
  readonly logger: Logger;
  /** Undefined: no such listener. */
  readonly limiter: Limiter | undefined;
  readonly auth: RequestListener | undefined;
  readonly gateway: RequestListener | undefined;
  /** For the gateway's listener alone. */
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

  async function release(): Promise<void> {
    addresses.clear();
    while (closers.length > 0) await closers.pop()?.(settings.shutdownTimeoutMs);
  }

  function opened(name: string, scheme: string, server: Opened): Listening {
    closers.push(server.close);
    const authority = `${hostForClients(settings.host)}:${server.port}`;
    addresses.set(name, authority);
    return { host: settings.host, port: server.port, url: `${scheme}://${authority}` };
  }

  async function openAll(): Promise<Listeners> {
    const ratelimit = parts.limiter && opened('ratelimit', 'grpc', await openRateLimit(parts, parts.limiter));
    const auth = parts.auth && opened('auth', 'http', await openHttp(settings, parts.auth, 'AUTH_PORT', undefined));
    const scheme = parts.tls === undefined ? 'http' : 'https';
    const gateway =
      parts.gateway && opened('gateway', scheme, await openHttp(settings, parts.gateway, 'PORT', parts.tls));
    return { ratelimit, auth, gateway };
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
      await release();
    },
  });
}

interface Opened {
  readonly port: number;
  readonly close: (deadlineMs: number) => Promise<void>;
}

async function openRateLimit({ settings, logger }: ListenersParts, limiter: Limiter): Promise<Opened> {
  try {
    return await serveRateLimit({ limiter, host: settings.host, port: settings.ratelimitPort, logger });
  } catch (cause) {
    throw new Error(`${messageOf(cause)} The settings are HOST and RATELIMIT_PORT.`, { cause });
  }
}

async function openHttp(
  settings: Settings,
  handler: RequestListener,
  portSetting: 'PORT' | 'AUTH_PORT',
  tls: Tls | undefined,
): Promise<Opened> {
  const port = portSetting === 'PORT' ? settings.port : settings.authPort;
  if (tls !== undefined) requireKeyPair(tls);
  return serveHttp({ ...settings, handler, port, portSetting, tls });
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
