/** The client's address and our public one: of the connection, or from the forwarded headers of trusted proxies. */
import type { IncomingMessage } from 'node:http';
import { BlockList, isIP, type Socket } from 'node:net';

export interface AddressOptions {
  /** The base of every absolute URL we write, such as `https://api.example.com`. @default the request's scheme and host */
  readonly publicUrl?: string | undefined;
  /** Addresses and CIDR ranges whose X-Forwarded-* headers are believed. @default [] */
  readonly trustedProxies?: readonly string[];
}

/** Where a request comes from, as it counts against guessed passwords. */
export interface Sender {
  /** The client's IPv4 address, or the /64 of its IPv6 address. */
  readonly network: string;
  /** True where many clients have that address: loopback, or a proxy whose X-Forwarded-For is not believed. */
  readonly isShared: boolean;
}

/** A machine with IPv6 can have a whole /64. */
const senderLengths: MaskLengths = { ipv4: 32, ipv6: 64 };

/** The server as the client sees it. */
export interface PublicHost {
  /** `http` or `https`. */
  readonly scheme: string;
  /** With its port, unless the client needs none. */
  readonly host: string;
}

/** Where something of ours is for the client. */
export interface PublicAddress extends PublicHost {
  /** Without a slash at the end: `''` or `/travel`. */
  readonly path: string;
}

export interface Addresses {
  /** True when the connection comes from a trusted proxy. */
  readonly trusts: (request: IncomingMessage) => boolean;
  readonly publicHost: (request: IncomingMessage) => PublicHost;
  /** The same as a URL, without a path. */
  readonly origin: (request: IncomingMessage) => string;
  /** The host that the client asked for, in lower case and without port: `api.example.com`, `[::1]`; `''` when none can be read. */
  readonly host: (request: IncomingMessage) => string;
  /** The host that the client asked for, as it wrote it, with any port: `API.example.com:8080`; undefined when none can be read. */
  readonly authority: (request: IncomingMessage) => string | undefined;
  /** `http` or `https`, as the client sees it. */
  readonly scheme: (request: IncomingMessage) => string;
  /** The client's IP address: the last hop that is not a proxy of ours. */
  readonly client: (request: IncomingMessage) => string;
  readonly sender: (request: IncomingMessage) => Sender;
  /** The path prefix that proxies took off: X-Forwarded-Prefix of a trusted one, else the path of the public URL. Without a slash at the end. */
  readonly prefix: (request: IncomingMessage) => string;
  /**
   * The public path of the gateway in front, which has the pages about problems (X-Forwarded-Root), without a slash at the
   * end. Undefined: no gateway says so.
   */
  readonly gatewayRoot: (request: IncomingMessage) => string | undefined;
}

export function createAddresses({ publicUrl, trustedProxies = [] }: AddressOptions = {}): Addresses {
  const isTrustedProxy = createTrust(trustedProxies);
  const isTrustedSocket = rememberBySocket(isTrustedProxy);
  const fixed = publicUrl === undefined ? undefined : addressIn(publicUrl.replace(/\/+$/, ''));
  const trusts = trustedProxies.length === 0 ? () => false : ({ socket }: IncomingMessage) => isTrustedSocket(socket);
  const forwarded = (request: IncomingMessage, name: string) =>
    trusts(request) ? lastOf(request.headers[name]) : undefined;
  const hostAndPort = (request: IncomingMessage) =>
    readableHost(forwarded(request, 'x-forwarded-host')) ?? readableHost(request.headers.host);
  const scheme = (request: IncomingMessage) => {
    const proto = forwarded(request, 'x-forwarded-proto')?.toLowerCase();
    if (proto === 'http' || proto === 'https') return proto;
    return (request.socket as Socket & { encrypted?: boolean }).encrypted === true ? 'https' : 'http';
  };
  const publicHost = (request: IncomingMessage): PublicHost =>
    fixed ?? { scheme: scheme(request), host: hostAndPort(request) ?? ownHost(request.socket) };
  const isHostOfUrl = rememberLast((host) => URL.canParse(`http://${host}`));
  const client = (request: IncomingMessage) => {
    const peer = unmapIpv4(request.socket.remoteAddress ?? '');
    return trusts(request) ? lastUntrusted(request.headers['x-forwarded-for'], peer, isTrustedProxy) : peer;
  };
  return Object.freeze({
    trusts,
    scheme,
    client,
    sender(request: IncomingMessage) {
      const address = client(request);
      const isForwarded = !trusts(request) && request.headers['x-forwarded-for'] !== undefined;
      return {
        network: maskAddress(address, senderLengths),
        isShared: isForwarded || isTrustedProxy(address) || /^(?:127\.|::1$)/.test(address),
      };
    },
    publicHost,
    origin(request: IncomingMessage) {
      const { scheme, host } = publicHost(request);
      return `${scheme}://${host}`;
    },
    host: (request: IncomingMessage) => hostName(hostAndPort(request) ?? ''),
    authority(request: IncomingMessage) {
      const host = hostAndPort(request);
      return host !== undefined && isHostOfUrl(host) ? host : undefined;
    },
    prefix: (request: IncomingMessage) => readablePath(forwarded(request, 'x-forwarded-prefix')) || (fixed?.path ?? ''),
    gatewayRoot: (request: IncomingMessage) => readablePath(forwarded(request, 'x-forwarded-root')),
  });
}

/** Of a URL without a slash at the end. */
function addressIn(url: string): PublicAddress {
  const [scheme = '', , host = '', ...path] = url.split('/');
  return { scheme: scheme.slice(0, -1), host, path: ['', ...path].join('/') };
}

/** Most requests ask for the host of the request before. */
function rememberLast(check: (host: string) => boolean): (host: string) => boolean {
  let [last, result] = ['', false];
  return (host) => {
    if (host !== last) [last, result] = [host, check(host)];
    return result;
  };
}

/** A host without its port and in lower case. The dot at the end of a full domain name does not make it another host. */
function hostName(host: string): string {
  return host.replace(/:\d+$/, '').replace(/\.$/, '').toLowerCase();
}

/** Each proxy appends, so the last value is the one that our own proxy wrote. */
function lastOf(value: string | readonly string[] | undefined): string | undefined {
  const last = String(value ?? '')
    .split(',')
    .at(-1)
    ?.trim();
  return last || undefined;
}

/** Without a slash at the end. */
function readablePath(path: string | undefined): string | undefined {
  if (path === undefined || !/^(?:\/[\w.~!$&'()*+,;=:@%-]+)*\/?$/.test(path)) return undefined;
  return path.replace(/\/$/, '');
}

/** Only a name and a port: with anything else a client could write our links (RFC 9110 section 7.2). */
function readableHost(host: string | undefined): string | undefined {
  return host !== undefined && /^(?:[\w.-]+|\[[\da-f:.]+\])(?::\d{1,5})?$/i.test(host) ? host : undefined;
}

function ownHost({ localAddress = 'localhost', localPort }: Socket): string {
  const address = unmapIpv4(localAddress);
  return `${address.includes(':') ? `[${address}]` : address}${localPort === undefined ? '' : `:${localPort}`}`;
}

/** False for text that is no IP address. */
type IsTrustedProxy = (address: string | undefined) => boolean;

/** Reads the hops from our end: any client can write what is to the left of an untrusted or unreadable hop. */
function lastUntrusted(
  header: string | readonly string[] | undefined,
  peer: string,
  isTrustedProxy: IsTrustedProxy,
): string {
  const hops = String(header ?? '').split(',');
  let client = peer;
  for (const hop of hops.reverse()) {
    const address = hopAddress(hop.trim());
    if (address === undefined) return client;
    client = address;
    if (!isTrustedProxy(address)) return client;
  }
  return client;
}

/** Without the port that some proxies write (`203.0.113.7:4711`), which would make every connection another client. */
function hopAddress(hop: string): string | undefined {
  const bare = /^\[(.+)\](?::\d+)?$/.exec(hop)?.[1] ?? /^([\d.]+):\d+$/.exec(hop)?.[1] ?? hop;
  const family = isIP(bare);
  if (family === 0) return undefined;
  return family === 6 ? canonicalAddress(bare) : bare;
}

/** An IPv6 address as sockets have it (RFC 5952), since some proxies write `2001:DB8:0:0:0:0:0:7`; IPv4 within it as IPv4. */
function canonicalAddress(address: string): string {
  // A URL takes no zone.
  if (address.includes('%')) return address;
  const canonical = canonicalIpv6(address);
  const groups = canonical.startsWith('::ffff:') ? ipv6Groups(canonical) : undefined;
  return typeof groups === 'string' ? groups : canonical;
}

/** Throws a TypeError for an entry that is neither an address nor a range. `::ffff:10.0.0.1`, from a dual-stack socket, counts as IPv4. */
function createTrust(proxies: readonly string[]): IsTrustedProxy {
  if (proxies.length === 0) return () => false;
  const trusted = new BlockList();
  for (const entry of proxies) addEntry(trusted, entry);
  return (address = '') => {
    const family = isIP(address);
    return family !== 0 && trusted.check(address, family === 6 ? 'ipv6' : 'ipv4');
  };
}

function addEntry(trusted: BlockList, entry: string): void {
  const [address = '', bits, ...rest] = entry.split('/');
  const family = isIP(address);
  // A slash without a number after it would be read as /0 and trust the whole world.
  const isRange = bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (family === 6 ? 128 : 32));
  if (family === 0 || !isRange || rest.length > 0)
    throw new TypeError(`"${entry}" is neither an IP address nor a CIDR range`);
  const type = family === 6 ? 'ipv6' : 'ipv4';
  if (bits === undefined) trusted.addAddress(address, type);
  else trusted.addSubnet(address, Number(bits), type);
}

/** Checks a connection once: the check costs more than a request should. */
function rememberBySocket(isTrustedProxy: IsTrustedProxy): (socket: Socket) => boolean {
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

function unmapIpv4(address: string): string {
  return address.startsWith('::ffff:') && address.includes('.') ? address.slice('::ffff:'.length) : address;
}

/** The length of a network in bits, for each kind of address. */
interface MaskLengths {
  readonly ipv4: number;
  readonly ipv6: number;
}

/** `2001:db8::7` with 64 bits is `2001:db8::/64`. IPv4 within IPv6 counts as IPv4. Text that is no IP address stays as it is. */
export function maskAddress(address: string, lengths: MaskLengths): string {
  const [bare = ''] = address.split('%');
  if (isIP(bare) === 0) return address;
  const groups = isIP(bare) === 6 ? ipv6Groups(bare) : bare;
  if (typeof groups === 'string')
    return `${masked(groups.split('.').map(Number), 8, lengths.ipv4).join('.')}/${lengths.ipv4}`;
  const hex = masked(groups, 16, lengths.ipv6).map((group) => group.toString(16));
  return `${canonicalIpv6(hex.join(':'))}/${lengths.ipv6}`;
}

/** The groups of an IPv6 address, or the IPv4 address that it stands for. */
function ipv6Groups(address: string): readonly number[] | string {
  const [head = '', tail] = canonicalIpv6(address).split('::');
  const read = (part = '') => (part === '' ? [] : part.split(':').map((group) => Number.parseInt(group, 16)));
  const [before, after] = [read(head), read(tail)];
  const groups = [...before, ...Array<number>(8 - before.length - after.length).fill(0), ...after];
  const [high = 0, low = 0] = groups.slice(6);
  const isIpv4 = groups.slice(0, 6).join() === '0,0,0,0,0,65535';
  return isIpv4 ? [high >> 8, high & 255, low >> 8, low & 255].join('.') : groups;
}

/** URL writes groups in one way (RFC 5952), without an IPv4 address at the end. */
function canonicalIpv6(address: string): string {
  return new URL(`http://[${address}]/`).hostname.slice(1, -1);
}

/** Sets all bits after the first `length` to 0; each group has `width` bits. */
function masked(groups: readonly number[], width: number, length: number): readonly number[] {
  return groups.map((group, index) => {
    const cut = Math.min(width, Math.max(0, (index + 1) * width - length));
    return (group >> cut) << cut;
  });
}
