/** Which texts are host names, IP addresses and networks. */
import { isIP } from 'node:net';

/** A host name or an IP address without brackets. A dotted number that is no IPv4 address is neither. */
export function isHost(text: string): boolean {
  // The cheap question first: most texts are names.
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
  return wellFormed && Number(digits) >= 1 && Number(digits) <= 65535;
}

/** Reachable from this machine alone (RFC 1122 section 3.2.1.3, RFC 4291 section 2.5.3). */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'));
}
