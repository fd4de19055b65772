/** Where the client is and where it thinks we are: forwarded headers are believed from trusted proxies alone. */
import type { IncomingMessage } from 'node:http';
import { isIP, type Socket } from 'node:net';
import { createPeerTrust, createSocketTrust, type PeerTrust, plainAddress } from './peers.ts';

export interface AddressOptions {
  /** The base of every absolute URL we write, such as `https://api.example.com`. @default the request's scheme and host */
  readonly publicUrl?: string | undefined;
  /** Addresses and CIDR ranges whose X-Forwarded-* headers are believed. @default [] */
  readonly trustedProxies?: readonly string[];
}

export interface Addresses {
  /** True when the connection comes from a trusted proxy. */
  readonly trusts: (request: IncomingMessage) => boolean;
  /** Scheme, host and port as the client sees them, without a slash at the end. */
  readonly origin: (request: IncomingMessage) => string;
  /** The host that was asked for, in lower case and without port: `api.example.com`, `[::1]`; `''` when none can be read. */
  readonly host: (request: IncomingMessage) => string;
  /** `http` or `https`, as the client sees it. */
  readonly scheme: (request: IncomingMessage) => string;
  /** The client's IP address: the last hop that is not a proxy of ours. */
  readonly client: (request: IncomingMessage) => string;
  /** The path prefix that trusted proxies took off (X-Forwarded-Prefix), without a slash at the end. */
  readonly prefix: (request: IncomingMessage) => string;
}

export function createAddresses({ publicUrl, trustedProxies = [] }: AddressOptions = {}): Addresses {
  const trustsPeer = createPeerTrust(trustedProxies);
  const trustsSocket = createSocketTrust(trustsPeer);
  const fixedOrigin = publicUrl?.replace(/\/+$/, '');
  const trusts = trustedProxies.length === 0 ? () => false : ({ socket }: IncomingMessage) => trustsSocket(socket);
  const forwarded = (request: IncomingMessage, name: string) =>
    trusts(request) ? lastOf(request.headers[name]) : undefined;
  const saidHost = (request: IncomingMessage) =>
    readableHost(forwarded(request, 'x-forwarded-host')) ?? readableHost(request.headers.host);
  const scheme = (request: IncomingMessage) => {
    const said = forwarded(request, 'x-forwarded-proto')?.toLowerCase();
    if (said === 'http' || said === 'https') return said;
    return (request.socket as Socket & { encrypted?: boolean }).encrypted === true ? 'https' : 'http';
  };
  return Object.freeze({
    trusts,
    scheme,
    origin(request: IncomingMessage) {
      if (fixedOrigin !== undefined) return fixedOrigin;
      return `${scheme(request)}://${saidHost(request) ?? ownHost(request.socket)}`;
    },
    host: (request: IncomingMessage) => hostName(saidHost(request) ?? ''),
    client(request: IncomingMessage) {
      const peer = plainAddress(request.socket.remoteAddress ?? '');
      return trusts(request) ? lastUntrusted(request.headers['x-forwarded-for'], peer, trustsPeer) : peer;
    },
    prefix(request: IncomingMessage) {
      const said = forwarded(request, 'x-forwarded-prefix');
      return said !== undefined && /^(?:\/[\w.~!$&'()*+,;=:@%-]+)+\/?$/.test(said) ? said.replace(/\/$/, '') : '';
    },
  });
}

/** Each proxy appends, so the last value is the one our own proxy wrote. */
function lastOf(value: string | readonly string[] | undefined): string | undefined {
  return (
    String(value ?? '')
      .split(',')
      .at(-1)
      ?.trim() || undefined
  );
}

/** A host that is more than a name and a port would let a client write our links (RFC 9110 section 7.2). */
function readableHost(host: string | undefined): string | undefined {
  return host !== undefined && /^(?:[\w.-]+|\[[\da-f:.]+\])(?::\d{1,5})?$/i.test(host) ? host : undefined;
}

/** The dot at the end of a full domain name changes nothing about which host it is. */
function hostName(host: string): string {
  return host.replace(/:\d+$/, '').replace(/\.$/, '').toLowerCase();
}

function ownHost({ localAddress = 'localhost', localPort }: Socket): string {
  const address = plainAddress(localAddress);
  return `${address.includes(':') ? `[${address}]` : address}${localPort === undefined ? '' : `:${localPort}`}`;
}

/** Reads the hops from our end: what stands left of an untrusted or unreadable hop is anybody's word. */
function lastUntrusted(header: string | readonly string[] | undefined, peer: string, trusts: PeerTrust): string {
  const hops = String(header ?? '').split(',');
  let client = peer;
  for (const hop of hops.reverse()) {
    const address = hopAddress(hop.trim());
    if (address === undefined) return client;
    client = address;
    if (!trusts(address)) return client;
  }
  return client;
}

/** Some proxies write the port too (`203.0.113.7:4711`), which would make every connection another client. */
function hopAddress(hop: string): string | undefined {
  const bare = /^\[(.+)\](?::\d+)?$/.exec(hop)?.[1] ?? /^([\d.]+):\d+$/.exec(hop)?.[1] ?? hop;
  return isIP(bare) === 0 ? undefined : plainAddress(bare);
}
