/** A service behind the gateway that switches protocols on request, and records these requests. */
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { Socket } from 'node:net';
import type { Served, TestServers } from '../serve.ts';
import { type Peer, peerOf } from './peer.ts';

export interface UpgradeRequest {
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  /** The connection, from the first byte after the request on. */
  readonly peer: Peer;
}

export interface SwitchingUpstream extends Served {
  readonly upgrades: readonly UpgradeRequest[];
  /** Resolves with the next request to switch protocols. */
  readonly next: () => Promise<UpgradeRequest>;
  /** The number of open connections, whether they have switched or not. */
  readonly connections: () => number;
}

/** The response of RFC 6455, except for the digest. */
export const switching = [
  'HTTP/1.1 101 Switching Protocols',
  'Connection: Upgrade',
  'Upgrade: websocket',
  'Sec-WebSocket-Accept: digest',
  'Keep-Alive: timeout=5',
];

export function bytesOf(lines: readonly string[]): string {
  return [...lines, '', ''].join('\r\n');
}

/** Responds with `plain` to ordinary requests. @param respond handles requests to switch, on the socket */
export async function startSwitchingUpstream(
  servers: TestServers,
  respond: (socket: Socket, request: UpgradeRequest) => void = (socket) =>
    void socket.write(bytesOf(switching), 'latin1'),
): Promise<SwitchingUpstream> {
  const upgrades: UpgradeRequest[] = [];
  const sockets = new Set<Socket>();
  const waiting: ((one: UpgradeRequest) => void)[] = [];
  const server = createServer((_req, res) => res.end('plain'));
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  server.on('upgrade', (req, socket: Socket, head) => {
    // Behaves like a server of another protocol, which does not keep half-open connections.
    socket.allowHalfOpen = false;
    if (head.length > 0) socket.unshift(head);
    const one = { url: req.url ?? '', headers: req.headers, peer: peerOf(socket) };
    upgrades.push(one);
    waiting.shift()?.(one);
    respond(socket, one);
  });
  return {
    ...(await servers.listen(server)),
    upgrades,
    next: () => new Promise((resolve) => void waiting.push(resolve)),
    connections: () => sockets.size,
  };
}
