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
 * another address of such a service, or an IPv4 address in the form of IPv6.
 */
export function isOwnAddress(address: string): boolean {
  const ip = usualAddress(address);
  return ip !== undefined && (ownAddresses.test(ip) || metadataAddresses.includes(ip));
}

/**
 * Returns an IP address in the form that URLs have it in, because `::1` could also be written `0:0::1`, and without the
 * zone of a link: `fe80::1%eth0`. Undefined for what is none.
 */
export function usualAddress(address: string): string | undefined {
  const [ip = ''] = address.split('%');
  const family = isIP(ip);
  if (family === 0) return undefined;
  return family === 6 ? new URL(`http://[${ip}]`).hostname.slice(1, -1) : ip;
}

/** Amazon has all that it says to its machines in `fd00:ec2::/32`. */
const ownAddresses = /^(?:(?:127|0|169\.254)\..*|::1?|::ffff:.*|fe[89ab][\da-f]:.*|fd00:ec2:.*)$/;

/** Where other clouds have metadata and credentials outside of link-local addresses: see the data sources of cloud-init. */
const metadataAddresses = [
  // Alibaba
  '100.100.100.200',
  'fd00:100::100:200',
  // Akamai
  'fd00:a9fe:a9fe::1',
  // Azure: its wire server
  '168.63.129.16',
  // Google
  'fd20:ce::254',
  // Oracle, today's and its first cloud
  'fd00:c1::a9fe:a9fe',
  '192.0.0.192',
  // Scaleway
  'fd00:42::42',
];
