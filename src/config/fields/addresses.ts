/** Host names, IP addresses, networks, `host:port`, and service references such as `hotel` or `https://hotel.example:8443`. */
import { isIP } from 'node:net';

/** A host name or an IP address without brackets. A dotted number that is no IPv4 address is neither. */
export function isHost(text: string): boolean {
  // The cheap test first: most texts are names.
  return (/^[\w-]+(?:\.[\w-]+)*$/.test(text) && !/^[\d.]+$/.test(text)) || isIP(text) !== 0;
}

/** An address, or a network in CIDR notation (RFC 4632, RFC 4291 section 2.3). */
export function isNetwork(text: string): boolean {
  const [address = '', bits, ...rest] = text.split('/');
  const family = isIP(address);
  if (family === 0 || rest.length > 0) return false;
  return bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (family === 4 ? 32 : 128));
}

/** `hotel:9001`, `10.0.0.5:8081`, `[::1]:8081`; the port from 1 to 65535. */
export function isHostAndPort(text: string): boolean {
  const match = /^(?:\[(?<ipv6>[^\]]+)\]|(?<host>[^:[\]]+)):(?<port>\d{1,5})$/.exec(text);
  const { ipv6, host, port: digits } = match?.groups ?? {};
  const wellFormed = ipv6 === undefined ? host !== undefined && isHost(host) : isIP(ipv6) === 6;
  return wellFormed && isPort(Number(digits));
}

/** Reachable from this machine alone (RFC 1122 section 3.2.1.3, RFC 4291 section 2.5.3). */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'));
}

/** A reference with neither scheme nor port names a module of this process first. */
export interface ServiceReference {
  readonly scheme: 'http' | 'https' | 'grpc' | undefined;
  /** As in a URL: an IPv6 address keeps its brackets. */
  readonly host: string;
  readonly port: number | undefined;
  /** Begins with a slash and does not end with one; undefined when there is none. */
  readonly path: string | undefined;
}

/** Scheme, host, port and path. */
const grammar = /^(?:(http|https|grpc):\/\/)?(\[[\da-fA-F:.]+\]|[^\s:/?#@[\]]+)(?::(\d{1,5}))?(\/[^\s?#\\]*)?$/;

/** Undefined for an unknown scheme, credentials, a query, a port outside 1–65535, or a path without a scheme. */
export function parseServiceReference(text: string): ServiceReference | undefined {
  const [, scheme, host = '', digits, path] = grammar.exec(text) ?? [];
  const port = digits === undefined ? undefined : Number(digits);
  if (!isHost(host.startsWith('[') ? host.slice(1, -1) : host)) return undefined;
  if ((port !== undefined && !isPort(port)) || (path !== undefined && scheme === undefined)) return undefined;
  return Object.freeze({ scheme: schemeOf(scheme), host, port, path: path?.replace(/\/+$/, '') || undefined });
}

function isPort(port: number): boolean {
  return port >= 1 && port <= 65535;
}

function schemeOf(text: string | undefined): ServiceReference['scheme'] {
  return text === 'http' || text === 'https' || text === 'grpc' ? text : undefined;
}
