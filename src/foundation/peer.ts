/** The other end of a socket: how to identify it, and whether it is this machine. */
import { isIP } from 'node:net';

/** Identifies a connection, also where a library passes another object for the same socket. */
export function peerOf({ remoteAddress, remotePort }: Peer): string {
  return `${remoteAddress} ${remotePort}`;
}

export interface Peer {
  readonly remoteAddress?: string | undefined;
  readonly remotePort?: number | undefined;
}

/**
 * Reports whether an IP address is loopback, unspecified or link-local, where clouds have the credentials of a machine, or
 * an IPv4 address in the form of IPv6. It may have the zone of a link: `fe80::1%eth0`.
 */
export function isOwnAddress(address: string): boolean {
  const [ip = ''] = address.split('%');
  const family = isIP(ip);
  // The URL has the usual form of an IPv6 address, which could also be written 0:0::1.
  const usual = family === 6 ? new URL(`http://[${ip}]`).hostname.slice(1, -1) : ip;
  return family !== 0 && ownAddresses.test(usual);
}

/** `fd00:ec2::254` has the credentials of a machine at Amazon. */
const ownAddresses = /^(?:(?:127|0|169\.254)\..*|::1?|::ffff:.*|fe[89ab][\da-f]:.*|fd00:ec2::254)$/;
