/** Parses the header of the PROXY protocol, versions 1 and 2, with which a proxy names the client before its first byte. */
import { isIPv4, isIPv6 } from 'node:net';
import { canonicalAddress } from '../network/ip.ts';

/** The client's end of the connection to the proxy. */
export interface ProxiedPeer {
  /** In the form in which sockets report it. */
  readonly address: string;
  readonly port: number;
}

export type ProxyHeader =
  /** Everything so far may be the beginning of a header of at least `bytesMin` bytes. */
  | { readonly kind: 'incomplete'; readonly bytesMin: number }
  | { readonly kind: 'malformed'; readonly reason: string }
  /** `peer` is undefined if the proxy speaks for itself, such as for a health check, or does not know the client. */
  | { readonly kind: 'complete'; readonly bytes: number; readonly peer: ProxiedPeer | undefined };

/** HAProxy's specification, section 2.1: the longest line with its line break. */
const lineBytesMax = 107;
/** Section 2.2 allows 64 KiB. Proxies send addresses of at most 216 bytes, and a few hundred bytes of other facts. */
const restBytesMax = 4096;

const textStart = Buffer.from('PROXY ');
const signature = Buffer.from('\r\n\r\n\0\r\nQUIT\n', 'latin1');
/** The signature, the version with the command, the family with the protocol, and the length of the rest. */
const fixedBytes = signature.length + 4;

/** `bytes`: everything received so far. */
export function parseProxyHeader(bytes: Buffer): ProxyHeader {
  if (bytes.length === 0) return incomplete(1);
  if (startsLike(bytes, signature)) return bytes.length < fixedBytes ? incomplete(fixedBytes) : parseBinary(bytes);
  if (startsLike(bytes, textStart)) return parseText(bytes);
  return malformed('it does not begin with a PROXY header');
}

function incomplete(bytesMin: number): ProxyHeader {
  return { kind: 'incomplete', bytesMin };
}

function malformed(reason: string): ProxyHeader {
  return { kind: 'malformed', reason };
}

function startsLike(bytes: Buffer, start: Buffer): boolean {
  const length = Math.min(bytes.length, start.length);
  return bytes.subarray(0, length).equals(start.subarray(0, length));
}

const textHeader = /^PROXY (TCP[46]) ([^ ]+) ([^ ]+) (0|[1-9]\d{0,4}) (0|[1-9]\d{0,4})$/;

function parseText(bytes: Buffer): ProxyHeader {
  const end = bytes.subarray(0, lineBytesMax).indexOf('\r\n');
  if (end === -1)
    return bytes.length < lineBytesMax ? incomplete(bytes.length + 1) : malformed('the line of version 1 is too long');
  const line = bytes.toString('latin1', 0, end);
  const size = end + 2;
  if (/^PROXY UNKNOWN(?: |$)/.test(line)) return { kind: 'complete', bytes: size, peer: undefined };
  const [, family, source = '', destination = '', port, otherPort] = textHeader.exec(line) ?? [];
  const isAddress = family === 'TCP4' ? isIPv4 : isIPv6WithoutZone;
  const areValid = isAddress(source) && isAddress(destination) && Number(port) <= 65535 && Number(otherPort) <= 65535;
  if (family === undefined || !areValid) return malformed('the line of version 1 is malformed');
  return { kind: 'complete', bytes: size, peer: { address: canonicalAddress(source), port: Number(port) } };
}

function isIPv6WithoutZone(text: string): boolean {
  return isIPv6(text) && !text.includes('%');
}

/** The families with their protocol, and the size of their addresses and ports. Datagrams never arrive here. */
const addressBytes: ReadonlyMap<number, number> = new Map([
  [0x00, 0],
  [0x11, 12],
  [0x21, 36],
  [0x31, 216],
]);

function parseBinary(bytes: Buffer): ProxyHeader {
  const version = bytes.readUInt8(12);
  const family = bytes.readUInt8(13);
  const size = fixedBytes + bytes.readUInt16BE(14);
  const [isLocal, isProxied] = [version === 0x20, version === 0x21];
  if (!isLocal && !isProxied) return malformed('the version or the command is unknown');
  if (size > fixedBytes + restBytesMax) return malformed('the header of version 2 is too long');
  const needed = isLocal ? 0 : addressBytes.get(family);
  if (needed === undefined) return malformed('the address family or the protocol is not supported');
  if (size < fixedBytes + needed) return malformed('the header of version 2 is too short for its addresses');
  if (bytes.length < size) return incomplete(size);
  return { kind: 'complete', bytes: size, peer: isLocal ? undefined : binaryPeer(bytes, family) };
}

/** Undefined for a client of the proxy that has no IP address. */
function binaryPeer(bytes: Buffer, family: number): ProxiedPeer | undefined {
  const start = fixedBytes;
  if (family === 0x11)
    return { address: bytes.subarray(start, start + 4).join('.'), port: bytes.readUInt16BE(start + 8) };
  if (family !== 0x21) return undefined;
  const groups = Array.from({ length: 8 }, (_, index) => bytes.readUInt16BE(start + 2 * index).toString(16));
  return { address: canonicalAddress(groups.join(':')), port: bytes.readUInt16BE(start + 32) };
}
