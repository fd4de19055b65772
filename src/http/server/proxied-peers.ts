/** Reads the PROXY header of each connection, and makes the client that it names the peer of the socket. */
import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { type Logger, peerOf } from '#foundation';
import { createNetworks } from '../network/networks.ts';
import { type ProxiedPeer, parseProxyHeader } from './proxy-protocol.ts';
import { createThrottledLog } from './throttled-log.ts';

export interface ProxiedPeersOptions {
  /** The proxies that may name clients, by address or network. Connections from others are closed. */
  readonly proxies: readonly string[];
  /** How long the header may take to arrive. */
  readonly timeoutMs: number;
  /** Logs connections that are closed. @default nothing is logged */
  readonly logger?: Pick<Logger, 'warn'> | undefined;
}

export interface ProxiedPeers {
  /** False if the connection does not come from a proxy. It is then closed. */
  readonly isFromProxy: (socket: Socket) => boolean;
  /** Calls `accept` when the header has been read and removed. Closes the connection if it has none. */
  readonly read: (socket: Socket, accept: () => void) => void;
  /** Whether the connection still waits for its header. */
  readonly isReading: (socket: Socket) => boolean;
  /** Closes the connections that wait for their header. */
  readonly close: () => void;
}

/** Must be created before other listeners of `secureConnection` that identify a connection by its proxy. */
export function createProxiedPeers(server: Server, isTls: boolean, options: ProxiedPeersOptions): ProxiedPeers {
  const { proxies, timeoutMs, logger } = options;
  const isProxy = createNetworks(proxies);
  const reading = new Set<Socket>();
  const log =
    logger && createThrottledLog(logger, 'a connection without a PROXY header from TRUSTED_PROXIES was closed');
  const handOver = isTls ? createHandOver(server) : undefined;

  function refuse(socket: Socket, reason: string): void {
    const { remoteAddress: client } = socket;
    log?.(() => ({ client, reason }));
    socket.destroy();
  }

  return Object.freeze({
    isFromProxy(socket: Socket) {
      if (isProxy(socket.remoteAddress)) return true;
      refuse(socket, 'its address is not in TRUSTED_PROXIES');
      return false;
    },
    read(socket: Socket, accept: () => void) {
      reading.add(socket);
      readHeader(socket, timeoutMs, {
        onEnd: () => reading.delete(socket),
        onFault: (reason) => refuse(socket, reason),
        onHeader(peer) {
          if (peer !== undefined) {
            handOver?.(socket, peer);
            replacePeer(socket, peer);
          }
          accept();
        },
      });
    },
    isReading: (socket: Socket) => reading.has(socket),
    close() {
      for (const socket of reading) socket.destroy();
    },
  });
}

interface HeaderEvents {
  readonly onHeader: (peer: ProxiedPeer | undefined) => void;
  readonly onFault: (reason: string) => void;
  /** Called before `onHeader`, and when the connection closes. */
  readonly onEnd: () => void;
}

/** What follows the header stays in the socket, for its next reader. */
function readHeader(socket: Socket, timeoutMs: number, { onHeader, onFault, onEnd }: HeaderEvents): void {
  const chunks: Buffer[] = [];
  let size = 0;
  let bytesMin = 0;
  const deadline = setTimeout(() => fail('its PROXY header did not arrive in time'), timeoutMs);

  function readMore(): void {
    for (let chunk: Buffer | null = socket.read(); chunk !== null; chunk = socket.read()) {
      chunks.push(chunk);
      size += chunk.length;
    }
    if (size > 0 && size >= bytesMin) parse(Buffer.concat(chunks, size));
  }

  function parse(bytes: Buffer): void {
    const header = parseProxyHeader(bytes);
    if (header.kind === 'incomplete') bytesMin = header.bytesMin;
    else if (header.kind === 'malformed') fail(header.reason);
    else finish(header.peer, bytes.subarray(header.bytes));
  }

  function finish(peer: ProxiedPeer | undefined, rest: Buffer): void {
    stopReading();
    if (rest.length > 0) socket.unshift(rest);
    // Node updates the state of the stream shortly after its last reader has left.
    setImmediate(() => {
      socket.off('error', ignore);
      onEnd();
      if (!socket.destroyed) onHeader(peer);
    });
  }

  function fail(reason: string): void {
    stopReading();
    onFault(reason);
  }

  /** A connection without a byte is a check whether the port is open. */
  function leave(): void {
    if (size > 0) fail('it ended within its PROXY header');
    else socket.destroy();
  }

  function stopReading(): void {
    clearTimeout(deadline);
    socket.off('readable', readMore).off('end', leave).off('close', stopReading);
  }

  socket.on('error', ignore).on('readable', readMore).on('end', leave).on('close', stopReading);
  socket.once('close', onEnd);
}

/** The socket closes after an error. */
function ignore(): void {}

function replacePeer(socket: Socket, { address, port }: ProxiedPeer): void {
  Object.defineProperties(socket, {
    remoteAddress: { value: address },
    remotePort: { value: port },
    remoteFamily: { value: address.includes(':') ? 'IPv6' : 'IPv4' },
  });
}

/** `secureConnection` passes a different socket object for the same connection. It is found by the address of the proxy. */
function createHandOver(server: Server): (socket: Socket, peer: ProxiedPeer) => void {
  const peers = new Map<string, ProxiedPeer>();
  server.prependListener('secureConnection', (tlsSocket: Socket) => {
    const key = peerOf(tlsSocket);
    const peer = peers.get(key);
    peers.delete(key);
    if (peer !== undefined) replacePeer(tlsSocket, peer);
  });
  return function handOver(socket, peer) {
    const key = peerOf(socket);
    peers.set(key, peer);
    socket.once('close', () => peers.delete(key));
  };
}
