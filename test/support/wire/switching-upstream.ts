/** A service behind the gateway that switches protocols when it is asked to, and remembers who asked how. */
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { Socket } from 'node:net';
import type { Served, TestServers } from '../serve.ts';
import { type Peer, peerOf } from './peer.ts';

export interface Asked {
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  /** From the first byte after the request on. */
  readonly peer: Peer;
}

export interface SwitchingUpstream extends Served {
  readonly asked: readonly Asked[];
  /** The next request to switch that comes. */
  readonly next: () => Promise<Asked>;
  /** How many connections of any kind it holds. */
  readonly connections: () => number;
}

/** As RFC 6455 has it but for the digest. */
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

/** `answer` has the socket; a request that asks for no switch reads `plain`. */
export async function startSwitchingUpstream(
  servers: TestServers,
  answer: (socket: Socket, asked: Asked) => void = (socket) => void socket.write(bytesOf(switching), 'latin1'),
): Promise<SwitchingUpstream> {
  const asked: Asked[] = [];
  const sockets = new Set<Socket>();
  const waiting: ((one: Asked) => void)[] = [];
  const server = createServer((_req, res) => res.end('plain'));
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  server.on('upgrade', (req, socket: Socket, head) => {
    // As a server that is none of HTTP would be.
    socket.allowHalfOpen = false;
    if (head.length > 0) socket.unshift(head);
    const one = { url: req.url ?? '', headers: req.headers, peer: peerOf(socket) };
    asked.push(one);
    waiting.shift()?.(one);
    answer(socket, one);
  });
  return {
    ...(await servers.listen(server)),
    asked,
    next: () => new Promise((resolve) => void waiting.push(resolve)),
    connections: () => sockets.size,
  };
}
