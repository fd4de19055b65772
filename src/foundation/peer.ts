/** The other end of a socket. */

/** Identifies a connection, also where a library passes another object for the same socket. */
export function peerOf({ remoteAddress, remotePort }: Peer): string {
  return `${remoteAddress} ${remotePort}`;
}

export interface Peer {
  readonly remoteAddress?: string | undefined;
  readonly remotePort?: number | undefined;
}
