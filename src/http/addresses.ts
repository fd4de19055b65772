/** Finds the client's address and this server's public one, from the connection or from a trusted proxy's headers. */
import type { IncomingMessage } from 'node:http';
import { isIP, type Socket } from 'node:net';
import { canonicalAddress, canonicalIpv6, ipv6Groups, unmapIpv4 } from './network/ip.ts';
import { type Contains, createNetworks } from './network/networks.ts';

export interface AddressOptions {
  /** The base of all absolute URLs, such as `https://api.example.com`. @default the request's scheme and host */
  readonly publicUrl?: string | undefined;
  /** Addresses and networks such as `10.0.0.0/8` whose X-Forwarded-* headers are trusted. @default [] */
  readonly trustedProxies?: readonly string[];
}

/** The source of a request, used to throttle password guessing. */
export interface Sender {
  /** The client's IPv4 address, or the /64 of its IPv6 address. */
  readonly network: string;
  /**
   * True when many clients may share the address: loopback, a trusted proxy that names no client, or a proxy that cannot
   * be known. The last are Unix sockets and, without trusted proxies, private addresses, if they send X-Forwarded-For.
   */
  readonly isShared: boolean;
}

/** A single IPv6 machine can use a whole /64. */
const senderLengths: MaskLengths = { ipv4: 32, ipv6: 64 };

/** Networks of private addresses: RFC 1918, RFC 6598, RFC 4193 and link-local ones. */
const privateNetworks = [
  '10.0.0.0/8',
  '172.16.0.0/12',
  '192.168.0.0/16',
  '100.64.0.0/10',
  '169.254.0.0/16',
  'fc00::/7',
  'fe80::/10',
];

/** The server as the client sees it. */
export interface PublicHost {
  /** `http` or `https`. */
  readonly scheme: string;
  /** Includes the port if clients have to give one. */
  readonly host: string;
}

/** A public URL of this server, in parts. */
export interface PublicAddress extends PublicHost {
  /** Without a trailing slash: `''` or `/shop`. */
  readonly path: string;
}

export interface Addresses {
  /** True when the connection comes from a trusted proxy. */
  readonly trusts: (request: IncomingMessage) => boolean;
  readonly publicHost: (request: IncomingMessage) => PublicHost;
  /** The public host as a URL without a path: `https://api.example.com`. */
  readonly origin: (request: IncomingMessage) => string;
  /** The same if it is configured, otherwise `''`: unlike `origin`, it does not depend on the request. */
  readonly configuredOrigin: () => string;
  /** The requested host in lower case, without a port: `api.example.com`, `[::1]`; `''` if missing or invalid. */
  readonly host: (request: IncomingMessage) => string;
  /** The requested host exactly as sent, including a port: `API.example.com:8080`. Undefined if missing or invalid. */
  readonly authority: (request: IncomingMessage) => string | undefined;
  /** `http` or `https`, as the client sees it. */
  readonly scheme: (request: IncomingMessage) => string;
  /** The client's IP address: the last hop that is not a trusted proxy. */
  readonly client: (request: IncomingMessage) => string;
  /**
   * The same, but `''` when trusted proxies say that they do not know it: the last hop that they name is not an address.
   * `client` is then the proxy that said so.
   */
  readonly knownClient: (request: IncomingMessage) => string;
  readonly sender: (request: IncomingMessage) => Sender;
  /** The `X-Forwarded-For` for the next server: the hops that a trusted proxy sent, and the peer of this connection. */
  readonly forwardedFor: (request: IncomingMessage) => string;
  /**
   * The path prefix that proxies stripped, without a trailing slash: X-Forwarded-Prefix from a trusted proxy, otherwise
   * the path of the public URL.
   */
  readonly prefix: (request: IncomingMessage) => string;
  /**
   * The public path of the gateway in front of this server (X-Forwarded-Root), which serves the problem pages. Without
   * a trailing slash. Undefined when no trusted proxy sent it.
   */
  readonly gatewayRoot: (request: IncomingMessage) => string | undefined;
}

export function createAddresses({ publicUrl, trustedProxies = [] }: AddressOptions = {}): Addresses {
  const isTrustedProxy = createNetworks(trustedProxies);
  const isTrustedSocket = memoizeBySocket(isTrustedProxy);
  const isPrivate = createNetworks(trustedProxies.length === 0 ? privateNetworks : []);
  const configured = publicUrl === undefined ? undefined : parseAddress(publicUrl.replace(/\/+$/, ''));
  const trusts = trustedProxies.length === 0 ? () => false : ({ socket }: IncomingMessage) => isTrustedSocket(socket);
  const forwarded = (request: IncomingMessage, name: string) =>
    trusts(request) ? lastOf(request.headers[name]) : undefined;
  const isHost = memoizeLast((host) => hostPattern.test(host));
  const validHost = (host: string | undefined) => (host !== undefined && isHost(host) ? host : undefined);
  const hostAndPort = (request: IncomingMessage) =>
    validHost(forwarded(request, 'x-forwarded-host')) ?? validHost(request.headers.host);
  const scheme = (request: IncomingMessage) => {
    const proto = forwarded(request, 'x-forwarded-proto')?.toLowerCase();
    // Traefik and others send the scheme of the WebSocket that the client opens.
    if (proto === 'https' || proto === 'wss') return 'https';
    if (proto === 'http' || proto === 'ws') return 'http';
    return connectionScheme(request);
  };
  const publicHost = (request: IncomingMessage): PublicHost =>
    configured ?? { scheme: scheme(request), host: hostAndPort(request) ?? ownHost(request.socket) };
  const isHostOfUrl = memoizeLast((host) => URL.canParse(`http://${host}`));
  /** `unknown`: what to return when a trusted proxy names something that is not an address. */
  const lastHop = (request: IncomingMessage, unknown?: '') => {
    const peer = unmapIpv4(request.socket.remoteAddress ?? '');
    if (!trusts(request)) return peer;
    return lastUntrusted(request.headers['x-forwarded-for'], peer, isTrustedProxy, unknown);
  };
  const client = (request: IncomingMessage) => lastHop(request);
  return Object.freeze({
    trusts,
    scheme,
    client,
    knownClient: (request: IncomingMessage) => lastHop(request, ''),
    sender(request: IncomingMessage) {
      const address = client(request);
      // The header alone shows nothing: otherwise any client could send it and guess passwords of many users.
      const mayBeProxy = request.headers['x-forwarded-for'] !== undefined && (address === '' || isPrivate(address));
      return {
        network: maskAddress(address, senderLengths),
        isShared: mayBeProxy || isTrustedProxy(address) || /^(?:127\.|::1$)/.test(address),
      };
    },
    forwardedFor(request: IncomingMessage) {
      const peer = unmapIpv4(request.socket.remoteAddress ?? 'unknown');
      const earlier = trusts(request) ? request.headers['x-forwarded-for'] : undefined;
      return earlier === undefined ? peer : `${earlier}, ${peer}`;
    },
    publicHost,
    origin(request: IncomingMessage) {
      const { scheme, host } = publicHost(request);
      return `${scheme}://${host}`;
    },
    configuredOrigin: () => (configured === undefined ? '' : `${configured.scheme}://${configured.host}`),
    host: (request: IncomingMessage) => hostName(hostAndPort(request) ?? ''),
    authority(request: IncomingMessage) {
      const host = hostAndPort(request);
      return host !== undefined && isHostOfUrl(host) ? host : undefined;
    },
    prefix: (request: IncomingMessage) =>
      (trusts(request) && joinedPath(request.headers['x-forwarded-prefix'])) || (configured?.path ?? ''),
    gatewayRoot: (request: IncomingMessage) => validPath(forwarded(request, 'x-forwarded-root')),
  });
}

/** Splits a URL that has no trailing slash. */
function parseAddress(url: string): PublicAddress {
  const [scheme = '', , host = '', ...path] = url.split('/');
  return { scheme: scheme.slice(0, -1), host, path: ['', ...path].join('/') };
}

/** Caches the last result: consecutive requests usually name the same host. */
function memoizeLast(check: (host: string) => boolean): (host: string) => boolean {
  let [last, result] = ['', false];
  return (host) => {
    if (host !== last) [last, result] = [host, check(host)];
    return result;
  };
}

/** The host in lower case, without its port or the trailing dot of a fully qualified domain name. */
function hostName(host: string): string {
  return host.replace(/:\d*$/, '').replace(/\.$/, '').toLowerCase();
}

/** Every proxy appends its value, so the last one comes from the proxy nearest to us. */
function lastOf(value: string | readonly string[] | undefined): string | undefined {
  const last = String(value ?? '')
    .split(',')
    .at(-1)
    ?.trim();
  return last || undefined;
}

/** Returns the path without a trailing slash, or undefined if it has characters that are not safe in a link. */
function validPath(path: string | undefined): string | undefined {
  if (path === undefined || !/^(?:\/[\w.~!$&'()*+,;=:@%-]+)*\/?$/.test(path)) return undefined;
  return path.replace(/\/$/, '');
}

/** Joins the prefixes that proxies stripped one after the other. Everything to the left of an invalid one is dropped. */
function joinedPath(header: string | readonly string[] = ''): string {
  let path = '';
  for (const part of String(header).split(',').reverse()) {
    const prefix = validPath(part.trim());
    if (prefix === undefined) return path;
    path = prefix + path;
  }
  return path;
}

/**
 * Accepts only a name and a port, which may be empty. With anything else a client could forge our links (RFC 9110
 * section 7.2).
 */
const hostPattern = /^(?:[\w.-]+|\[[\da-f:.]+\])(?::\d{0,5})?$/i;

function ownHost({ localAddress = 'localhost', localPort }: Socket): string {
  const address = unmapIpv4(localAddress);
  return `${address.includes(':') ? `[${address}]` : address}${localPort === undefined ? '' : `:${localPort}`}`;
}

/** Reads X-Forwarded-For from right to left. Everything to the left of an untrusted or invalid hop can be forged. */
function lastUntrusted(
  header: string | readonly string[] | undefined,
  peer: string,
  isTrustedProxy: Contains,
  unknown?: string,
): string {
  const text = String(header ?? '').trim();
  let client = peer;
  if (text === '') return client;
  for (const hop of text.split(',').reverse()) {
    const address = hopAddress(hop.trim());
    if (address === undefined) return unknown ?? client;
    client = address;
    if (!isTrustedProxy(address)) return client;
  }
  return client;
}

/** Drops the port that some proxies add (`203.0.113.7:4711`). With it, every connection would be a different client. */
function hopAddress(hop: string): string | undefined {
  const bare = /^\[(.+)\](?::\d+)?$/.exec(hop)?.[1] ?? /^([\d.]+):\d+$/.exec(hop)?.[1] ?? hop;
  return isIP(bare) === 0 ? undefined : canonicalAddress(bare);
}

/** Checks each connection only once, because the check is too slow for every request. */
/** The protocol of the connection to this process, which a proxy in front may have opened. */
export function connectionScheme({ socket }: IncomingMessage): 'http' | 'https' {
  return (socket as Socket & { encrypted?: boolean }).encrypted === true ? 'https' : 'http';
}

function memoizeBySocket(isTrustedProxy: Contains): (socket: Socket) => boolean {
  const known = new WeakMap<Socket, boolean>();
  return (socket) => {
    let trusted = known.get(socket);
    if (trusted === undefined) {
      trusted = isTrustedProxy(socket.remoteAddress);
      known.set(socket, trusted);
    }
    return trusted;
  };
}

/** Prefix lengths in bits. */
interface MaskLengths {
  readonly ipv4: number;
  readonly ipv6: number;
}

/**
 * Returns the network of an address: `2001:db8::/64` for `2001:db8::7` and 64 bits. An IPv4-mapped IPv6 address counts
 * as IPv4. Text that is not an IP address is returned unchanged.
 */
export function maskAddress(address: string, lengths: MaskLengths): string {
  const [bare = ''] = address.split('%');
  if (isIP(bare) === 0) return address;
  const groups = isIP(bare) === 6 ? ipv6Groups(bare) : bare;
  if (typeof groups === 'string')
    return `${maskGroups(groups.split('.').map(Number), 8, lengths.ipv4).join('.')}/${lengths.ipv4}`;
  const hex = maskGroups(groups, 16, lengths.ipv6).map((group) => group.toString(16));
  return `${canonicalIpv6(hex.join(':'))}/${lengths.ipv6}`;
}

/** Sets all bits after the first `length` to 0. Each group is `width` bits wide. */
function maskGroups(groups: readonly number[], width: number, length: number): readonly number[] {
  return groups.map((group, index) => {
    const cut = Math.min(width, Math.max(0, (index + 1) * width - length));
    return (group >> cut) << cut;
  });
}
