/** Reads IPv4 and IPv6 addresses, and writes each in the one form in which sockets report it. */
import { isIP } from 'node:net';

/** Converts an IPv6 address to the form that sockets report (RFC 5952), and an IPv4-mapped one to plain IPv4. */
export function canonicalAddress(address: string): string {
  // The URL parser rejects a zone.
  if (isIP(address) !== 6 || address.includes('%')) return address;
  const canonical = canonicalIpv6(address);
  const groups = canonical.startsWith('::ffff:') ? ipv6Groups(canonical) : undefined;
  return typeof groups === 'string' ? groups : canonical;
}

export function unmapIpv4(address: string): string {
  return address.startsWith('::ffff:') && address.includes('.') ? address.slice('::ffff:'.length) : address;
}

/** The eight groups of an IPv6 address without a zone, or the IPv4 address if it is IPv4-mapped. */
export function ipv6Groups(address: string): readonly number[] | string {
  const [head = '', tail] = address.split('::');
  const read = (part = '') => (part === '' ? [] : part.split(':').flatMap(groupsIn));
  const [before, after] = [read(head), read(tail)];
  const groups = [...before, ...Array<number>(8 - before.length - after.length).fill(0), ...after];
  const [high = 0, low = 0] = groups.slice(6);
  const isIpv4 = groups.slice(0, 6).join() === '0,0,0,0,0,65535';
  return isIpv4 ? [high >> 8, high & 255, low >> 8, low & 255].join('.') : groups;
}

/** Reads a group or, at the end of an address, the two groups of an IPv4 address. */
function groupsIn(text: string): readonly number[] {
  if (!text.includes('.')) return [Number.parseInt(text, 16)];
  const [first = 0, second = 0, third = 0, fourth = 0] = text.split('.').map(Number);
  return [first * 256 + second, third * 256 + fourth];
}

/** Normalises as RFC 5952 requires, except that the URL parser writes a trailing IPv4 address as hexadecimal groups. */
export function canonicalIpv6(address: string): string {
  return new URL(`http://[${address}]/`).hostname.slice(1, -1);
}
