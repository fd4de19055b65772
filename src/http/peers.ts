/** Which peers are proxies of ours, so that what they say of the client may be believed. */
import { BlockList, isIP, type Socket } from 'node:net';

/** Tells whether an address is one of ours; an address that is none is not. */
export type PeerTrust = (address: string | undefined) => boolean;

/** `list`: addresses and CIDR ranges. An IPv4 peer on a dual-stack socket (`::ffff:10.0.0.1`) counts as IPv4. */
export function createPeerTrust(list: readonly string[]): PeerTrust {
  if (list.length === 0) return () => false;
  const ours = new BlockList();
  for (const entry of list) addEntry(ours, entry);
  return (address = '') => {
    const family = isIP(address);
    return family !== 0 && ours.check(address, family === 6 ? 'ipv6' : 'ipv4');
  };
}

function addEntry(ours: BlockList, entry: string): void {
  const [address = '', bits, ...rest] = entry.split('/');
  const family = isIP(address);
  // A slash without a number behind it would read as /0 and trust the whole world.
  const isRange = bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (family === 6 ? 128 : 32));
  if (family === 0 || !isRange || rest.length > 0)
    throw new TypeError(`"${entry}" is neither an IP address nor a CIDR range`);
  const type = family === 6 ? 'ipv6' : 'ipv4';
  if (bits === undefined) ours.addAddress(address, type);
  else ours.addSubnet(address, Number(bits), type);
}

export function plainAddress(address: string): string {
  return address.startsWith('::ffff:') && address.includes('.') ? address.slice('::ffff:'.length) : address;
}

/** The answer for one connection, remembered with it: the check costs more than a request should pay. */
export function createSocketTrust(trusts: PeerTrust): (socket: Socket) => boolean {
  const known = new WeakMap<Socket, boolean>();
  return (socket) => {
    let trusted = known.get(socket);
    if (trusted === undefined) {
      trusted = trusts(socket.remoteAddress);
      known.set(socket, trusted);
    }
    return trusted;
  };
}
