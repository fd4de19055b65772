/** Host names, IP addresses, networks, `host:port`, and service references such as `https://orders.example:8443`. */
import { isIP } from 'node:net';
import type { Fault } from '../errors.ts';
import { quote } from '../quote.ts';
import { anyCase } from './json-schema.ts';

/**
 * Accepts a host name, or an IP address without brackets. Rejects other names whose last part is a number: in a URL, they
 * are IPv4 addresses, or nothing at all.
 */
export function isHost(text: string): boolean {
  // The cheaper test comes first because most hosts are names.
  return (/^[\w-]+(?:\.[\w-]+)*$/.test(text) && !/(?:^|\.)(?:\d+|0x[\da-f]*)$/i.test(text)) || isIP(text) !== 0;
}

/** Accepts an IP address, or a network in CIDR notation (RFC 4632, RFC 4291 section 2.3). */
export function isNetwork(text: string): boolean {
  const [address = '', bits, ...rest] = text.split('/');
  const family = isIP(address);
  if (family === 0 || rest.length > 0) return false;
  return bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (family === 4 ? 32 : 128));
}

/** What JSON Schema can say about an address or a network. */
export const networkSchema = { pattern: '^[\\da-fA-F:.]+(?:%[^\\s/]+)?(?:/\\d{1,3})?$' };

export function networkFault(text: string): Fault | undefined {
  if (isNetwork(text)) return undefined;
  return {
    message: `${quote(text)} is neither an IP address nor a network`,
    remedy: 'Write an address such as 203.0.113.7, or a network such as 10.0.0.0/8 or 2001:db8::/32.',
  };
}

/** Accepts `orders:9001`, `10.0.0.5:8081` or `[::1]:8081`, with a port from 1 to 65535. */
export function isHostAndPort(text: string): boolean {
  const match = /^(?:\[(?<ipv6>[^\]]+)\]|(?<host>[^:[\]]+)):(?<port>\d{1,5})$/.exec(text);
  const { ipv6, host, port: digits } = match?.groups ?? {};
  const wellFormed = ipv6 === undefined ? host !== undefined && isHost(host) : isIP(ipv6) === 6;
  return wellFormed && isPort(Number(digits));
}

/** Reports whether only this machine can reach the host (RFC 1122 section 3.2.1.3, RFC 4291 section 2.5.3). */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'));
}

/** Returns the host for a URL. Clients on this machine reach a listener on all addresses at the loopback address. */
export function hostForClients(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1';
  if (host === '::') return '[::1]';
  return host.includes(':') ? `[${host}]` : host;
}

/** A reference with neither scheme nor port names a module of this process if there is one, and a host otherwise. */
export interface ServiceReference {
  readonly scheme: 'http' | 'https' | 'grpc' | undefined;
  /** Written as in a URL, so an IPv6 address has brackets. */
  readonly host: string;
  readonly port: number | undefined;
  /** Starts with a slash and does not end with one. Undefined when the reference has no path. */
  readonly path: string | undefined;
}

const hostForm = String.raw`\[[\da-fA-F:.]+\]|[^\s:/?#@[\]]+`;
/** A number of a port. */
export const portForm = String.raw`\d{1,5}`;

/** What JSON Schema can say about the name of a host, or about a service reference with one of these schemes. */
export const hostSchema = { pattern: `^(?:${hostForm})$` };
export const referenceSchema = (schemes: readonly string[]) => ({
  pattern: `^(?:(?:${schemes.map(anyCase).join('|')})://)?(?:\\[[\\da-fA-F:.]+\\]|[\\w.-]+)(?::${portForm})?/?$`,
  errorMessage: `must be the name of a service, name:port, or ${schemes[0]}://host:port without a path`,
});

/** Captures the scheme, host, port and path. A scheme may be in upper case (RFC 3986 section 3.1). */
const grammar = new RegExp(String.raw`^(?:([a-zA-Z]+):\/\/)?(${hostForm})(?::(${portForm}))?(\/[^\s?#\\]*)?$`);

/**
 * Returns undefined for anything else: an unknown scheme, credentials, a query, a port outside 1–65535, or a path
 * without a scheme.
 */
export function parseServiceReference(text: string): ServiceReference | undefined {
  const [, scheme, host = '', digits, path] = grammar.exec(text) ?? [];
  const port = digits === undefined ? undefined : Number(digits);
  if (!isHost(host.startsWith('[') ? host.slice(1, -1) : host)) return undefined;
  const known = schemeOf(scheme?.toLowerCase());
  if (scheme !== undefined && known === undefined) return undefined;
  if ((port !== undefined && !isPort(port)) || (path !== undefined && scheme === undefined)) return undefined;
  return Object.freeze({ scheme: known, host, port, path: path?.replace(/\/+$/, '') || undefined });
}

function isPort(port: number): boolean {
  return port >= 1 && port <= 65535;
}

function schemeOf(text: string | undefined): ServiceReference['scheme'] {
  return text === 'http' || text === 'https' || text === 'grpc' ? text : undefined;
}
