/** How a connection to one address is made: TLS is verified, and never against a name that a request brings. */
import { isIP } from 'node:net';
import type { buildConnector } from 'undici';
import { loadUndici } from './undici.ts';

export interface ConnectorOptions {
  /** Scheme, host and port. */
  readonly origin: string;
  /** The name that the certificate of an HTTPS address must show; undefined: the host of the origin. */
  readonly serverName: string | undefined;
  readonly connectTimeoutMs: number;
}

export interface Connector {
  readonly connect: buildConnector.connector;
  /** For each exchange: undici takes the name from `Host` otherwise, and connects anew when it changes. Undefined without TLS. */
  readonly verified: string | undefined;
}

export function createConnector({ origin, serverName, connectTimeoutMs }: ConnectorOptions): Connector {
  const { protocol, hostname } = new URL(origin);
  const connect = loadUndici().buildConnector({ timeout: connectTimeoutMs, allowH2: false });
  if (protocol !== 'https:') return { connect, verified: undefined };
  const verified = serverName ?? hostname;
  const servername = isIP(verified.replace(/^\[|\]$/g, '')) === 0 ? verified : '';
  return { connect: (options, callback) => connect({ ...options, servername }, callback), verified };
}
