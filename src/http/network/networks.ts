/** Tests whether an address is in a list of addresses and networks, which may be long. */
import { isIP } from 'node:net';
import { ipv6Groups } from './ip.ts';

/** Returns false for text that is not an IP address. */
export type Contains = (address: string | undefined) => boolean;

/**
 * Throws a TypeError for anything but addresses and networks in CIDR notation. An IPv4 address is the same as its
 * IPv4-mapped IPv6 address (`::ffff:10.0.0.1`), which dual-stack sockets report, so `::/0` contains all addresses.
 */
export function createNetworks(entries: readonly string[]): Contains {
  const ranges = mergeRanges(entries.map(rangeOf));
  const isInIpv6 = createSearch(ranges);
  const isInIpv4 = createSearch(ranges.flatMap(ipv4Part));
  return function contains(written = '') {
    const family = isIP(written);
    if (family === 0) return false;
    if (family === 4) return isInIpv4(ipv4Number(written));
    const groups = ipv6Groups(withoutZone(written));
    return typeof groups === 'string' ? isInIpv4(ipv4Number(groups)) : isInIpv6(ipv6Number(groups));
  };
}

/** Numbers for IPv4 addresses, because they are several times as fast, and otherwise integers of 128 bits. */
interface Range<N extends number | bigint> {
  readonly first: N;
  readonly last: N;
}

const ipv4Start = 0xffff_0000_0000n;
const ipv4End = 0xffff_ffff_ffffn;

function rangeOf(entry: string): Range<bigint> {
  const [address = '', bits, ...rest] = entry.split('/');
  const family = isIP(address);
  const width = family === 6 ? 128 : 32;
  // Without this check, a slash with no number after it would mean /0, which contains every address.
  const isRange = bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= width);
  if (family === 0 || !isRange || rest.length > 0)
    throw new TypeError(`"${entry}" is neither an IP address nor a network such as 10.0.0.0/8`);
  const size = 1n << BigInt(width - Number(bits ?? width));
  const number = family === 4 ? ipv4Start + BigInt(ipv4Number(address)) : ipv6NumberOf(withoutZone(address));
  const first = number - (number % size);
  return { first, last: first + size - 1n };
}

/** Returns the ranges in order, each apart from the next. */
function mergeRanges(ranges: readonly Range<bigint>[]): readonly Range<bigint>[] {
  const merged: Range<bigint>[] = [];
  for (const range of ranges.toSorted(byFirst)) {
    const before = merged.at(-1);
    if (before === undefined || range.first > before.last + 1n) merged.push(range);
    else if (range.last > before.last) merged[merged.length - 1] = { first: before.first, last: range.last };
  }
  return merged;
}

function byFirst(one: Range<bigint>, other: Range<bigint>): number {
  if (one.first === other.first) return 0;
  return one.first < other.first ? -1 : 1;
}

function ipv4Part({ first, last }: Range<bigint>): readonly Range<number>[] {
  if (last < ipv4Start || first > ipv4End) return [];
  const start = first < ipv4Start ? ipv4Start : first;
  const end = last > ipv4End ? ipv4End : last;
  return [{ first: Number(start - ipv4Start), last: Number(end - ipv4Start) }];
}

/** Halves the ranges until one is left that starts at or before the number. */
function createSearch<N extends number | bigint>(ranges: readonly Range<N>[]): (number: N) => boolean {
  return function isWithin(number) {
    let low = 0;
    let high = ranges.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((ranges[middle] as Range<N>).first <= number) low = middle + 1;
      else high = middle;
    }
    const range = ranges[low - 1];
    return range !== undefined && number <= range.last;
  };
}

function ipv4Number(address: string): number {
  return address.split('.').reduce((number, part) => number * 256 + Number(part), 0);
}

function ipv6Number(groups: readonly number[]): bigint {
  return groups.reduce((number, group) => (number << 16n) | BigInt(group), 0n);
}

function ipv6NumberOf(address: string): bigint {
  const groups = ipv6Groups(address);
  return typeof groups === 'string' ? ipv4Start + BigInt(ipv4Number(groups)) : ipv6Number(groups);
}

/** Drops the interface of a link-local address, such as `%eth0`. */
function withoutZone(address: string): string {
  const [bare = ''] = address.split('%', 1);
  return bare;
}
