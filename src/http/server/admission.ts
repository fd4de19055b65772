/** Admission of new connections: one limit with a share for each listener, and a bound on concurrent TLS handshakes. */
import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { createOncePerMinute, type Logger, peerOf } from '#foundation';
import { problem } from '../problem.ts';
import type { Connections } from './connections.ts';
import type { FirstBytes } from './http2/preface.ts';
import { problemResponse } from './last-response.ts';
import { createProxiedPeers, type ProxiedPeersOptions } from './proxied-peers.ts';

export interface ConnectionLimit {
  /** Creates the share of a listener. The other listeners can never use its `reserved` connections. @default 0 */
  readonly share: (reserved?: number) => ConnectionShare;
  readonly counts: () => ConnectionCounts;
}

/** The connections of one listener. */
export interface ConnectionShare {
  /**
   * Counts the connection until it closes. Returns false if there is no room. `turnAway` closes the connection if room is
   * needed before its first request. @default it is destroyed
   */
  readonly admit: (socket: Socket, turnAway?: (socket: Socket) => void) => boolean;
  /** Marks a connection as idle or, from its first request on, as busy. Idle ones may be closed to make room. */
  readonly setIdle: (socket: Socket, isIdle: boolean) => void;
  /** Counts the TLS socket instead of the one below it. */
  readonly replace: (socket: Socket, tlsSocket: Socket) => void;
  /** Counts the connection as one of HTTP/2 until it closes. */
  readonly countHttp2: (socket: Socket) => void;
  readonly countHttp2Request: () => void;
  /** Responds with 503 to a connection for which there is no room. */
  readonly reject: (socket: Socket) => void;
}

export interface ConnectionCounts {
  readonly open: number;
  readonly max: number;
  /** Connections rejected since the start. */
  readonly refused: number;
  /** Idle connections, and those without a request, closed to make room since the start. */
  readonly idleClosed: number;
  /** Those of the open connections that speak HTTP/2, and their requests since the start. */
  readonly http2: number;
  readonly http2Requests: number;
}

export interface ConnectionLimitOptions {
  readonly max: number;
  readonly logger: Pick<Logger, 'warn'>;
  /** What the log calls the limit. @default 'CONNECTIONS_MAX' */
  readonly name?: string;
  /** The rejected connections that may wait for their response concurrently. @default 100 */
  readonly rejectionsMax?: number;
}

/** Connections with a request may use this part of the room of a listener. The rest is for those without one yet. */
const activeShare = 0.9;

interface Share {
  readonly reserved: number;
  readonly open: Set<Socket>;
  /** Connections that have never sent the complete head of a request, longest first, and how to close each. */
  readonly silent: Map<Socket, (socket: Socket) => void>;
  /** Connections between two requests, in order of idle time, longest first. */
  readonly idle: Set<Socket>;
}

/**
 * At the limit, a new connection takes the place of the one that has been silent longest, and only without silent ones
 * of the one that has been idle longest. To keep places for new connections, a first request near the limit closes the
 * one that has been idle longest.
 */
export function createConnectionLimit(options: ConnectionLimitOptions): ConnectionLimit {
  const { max, logger, name = 'CONNECTIONS_MAX', rejectionsMax = 100 } = options;
  const shares: Share[] = [];
  const reject = createRejecter(rejectionsMax);
  const mayWarn = createOncePerMinute();
  let refused = 0;
  let idleClosed = 0;
  let http2 = 0;
  let http2Requests = 0;

  const counts = () => {
    const open = shares.reduce((sum, share) => sum + share.open.size, 0);
    return { open, max, refused, idleClosed, http2, http2Requests };
  };

  function warn(): void {
    if (!mayWarn()) return;
    const message = `connections are near ${name}: closing silent and idle ones, and rejecting new ones beyond the limit`;
    const { open } = counts();
    logger.warn({ open, max, refused, idleClosed }, message);
  }

  /** The number of connections that a listener may have: what the others neither use nor have reserved. */
  function roomFor(own: Share): number {
    const others = shares.filter((one) => one !== own);
    return others.reduce((room, { open, reserved }) => room - Math.max(open.size, reserved), max);
  }

  function isNearLimit(own: Share): boolean {
    return own.open.size - own.silent.size > Math.ceil(roomFor(own) * activeShare);
  }

  /** The listener itself and those that use more than is reserved for them. The one that exceeds it most is the first. */
  function donorsFor(own: Share): readonly Share[] {
    const excess = ({ open, reserved }: Share) => open.size - reserved;
    return shares.filter((one) => one === own || excess(one) > 0).sort((one, other) => excess(other) - excess(one));
  }

  function closeLongest(connections: 'silent' | 'idle', donors: readonly Share[]): boolean {
    warn();
    const donor = donors.find((one) => one[connections].size > 0);
    const [socket] = donor?.[connections].keys() ?? [];
    if (donor === undefined || socket === undefined) return false;
    const turnAway = donor.silent.get(socket) ?? destroy;
    forget(donor, socket);
    idleClosed += 1;
    turnAway(socket);
    return true;
  }

  function makeRoom(own: Share): void {
    const donors = donorsFor(own);
    if (!closeLongest('silent', donors)) closeLongest('idle', donors);
  }

  function openShare(reserved: number): ConnectionShare {
    const own: Share = { reserved, open: new Set(), silent: new Map(), idle: new Set() };
    shares.push(own);

    function count(socket: Socket, turnAway: (socket: Socket) => void): void {
      own.open.add(socket);
      own.silent.set(socket, turnAway);
      socket.once('close', () => forget(own, socket));
    }

    return Object.freeze({
      admit(socket: Socket, turnAway = destroy) {
        if (own.open.size >= roomFor(own)) makeRoom(own);
        const hasRoom = own.open.size < roomFor(own);
        if (hasRoom) count(socket, turnAway);
        else refused += 1;
        return hasRoom;
      },
      setIdle(socket: Socket, isIdle: boolean) {
        if (isIdle && own.open.has(socket)) own.idle.add(socket);
        else own.idle.delete(socket);
        const isFirstRequest = own.silent.delete(socket) && !socket.destroyed;
        if (isFirstRequest && isNearLimit(own)) closeLongest('idle', donorsFor(own));
      },
      replace(socket: Socket, tlsSocket: Socket) {
        forget(own, socket);
        count(tlsSocket, destroy);
      },
      countHttp2(socket: Socket) {
        http2 += 1;
        socket.once('close', () => {
          http2 -= 1;
        });
      },
      countHttp2Request() {
        http2Requests += 1;
      },
      reject,
    } satisfies ConnectionShare);
  }

  return Object.freeze({ share: (reserved = 0) => openShare(reserved), counts });
}

function forget({ open, silent, idle }: Share, socket: Socket): void {
  open.delete(socket);
  silent.delete(socket);
  idle.delete(socket);
}

function destroy(socket: Socket): void {
  socket.destroy();
}

export interface AdmissionOptions extends Pick<Connections, 'refuse'> {
  readonly isTls: boolean;
  /** Undefined when every connection without TLS is one of HTTP/1.1. */
  readonly firstBytes: FirstBytes | undefined;
  /** Undefined when connections do not begin with a PROXY header. */
  readonly proxyProtocol: ProxiedPeersOptions | undefined;
}

/**
 * Replaces Node's `connection` listener, which would otherwise run first, and calls it for admitted connections. Without
 * `share`, all are admitted. The returned function closes the connections that are not ready for HTTP yet.
 */
export function limitAdmission(
  server: Server,
  share: ConnectionShare | undefined,
  { isTls, firstBytes, refuse, proxyProtocol }: AdmissionOptions,
): () => void {
  const reject = isTls || share === undefined ? destroy : share.reject;
  const proxied = proxyProtocol && createProxiedPeers(server, isTls, proxyProtocol);

  function turnAway(socket: Socket): void {
    if (proxied?.isReading(socket)) destroy(socket);
    else if (firstBytes?.stop(socket)) reject(socket);
    // The request may already be on its way. It must not run after its client has got a 503.
    else refuse(socket, () => reject(socket));
  }

  const handshakes = isTls ? boundHandshakes(server, share) : undefined;
  const listeners = server.listeners('connection') as ((socket: Socket) => void)[];
  server.removeAllListeners('connection').on('connection', (socket: Socket) => {
    if (proxied?.isFromProxy(socket) === false) return;
    if (share?.admit(socket, isTls ? destroy : turnAway) === false) return reject(socket);
    handshakes?.begin(socket);
    const acceptHttp1 = () => {
      for (const listener of listeners) listener.call(server, socket);
    };
    const accept = firstBytes === undefined ? acceptHttp1 : () => firstBytes.read(socket, acceptHttp1);
    if (proxied === undefined) accept();
    else proxied.read(socket, accept);
  });
  return () => {
    handshakes?.close();
    proxied?.close();
    firstBytes?.close();
  };
}

/** Each handshake costs memory, and CPU time for a signature. */
const handshakesMax = 1000;

/** Closes the oldest handshake beyond the bound, because an honest client completes its handshake quickly. */
function boundHandshakes(server: Server, share: ConnectionShare | undefined) {
  const running = new Map<string, Socket>();
  // `secureConnection` passes a different socket object for the same connection, so they are matched by peer.
  server.prependListener('secureConnection', (tlsSocket: Socket) => {
    const peer = peerOf(tlsSocket);
    const socket = running.get(peer);
    if (socket !== undefined) share?.replace(socket, tlsSocket);
    running.delete(peer);
  });
  return {
    begin(socket: Socket) {
      const peer = peerOf(socket);
      running.set(peer, socket);
      socket.once('close', () => running.delete(peer));
      if (running.size <= handshakesMax) return;
      const [oldest] = running.values();
      oldest?.destroy();
    },
    close() {
      for (const socket of running.values()) socket.destroy();
    },
  };
}

/**
 * Time for a rejected client to send its request and read the response. Closing earlier would reset the connection, and
 * the response could be lost.
 */
const rejectionMs = 1000;

function createRejecter(rejectionsMax: number): (socket: Socket) => void {
  let open = 0;
  return function reject(socket) {
    socket.on('error', () => socket.destroy());
    const response = problemResponse(problem('overloaded'));
    if (open >= rejectionsMax) {
      // The write is immediate, so most clients still receive the response.
      socket.write(response);
      socket.destroy();
      return;
    }
    open += 1;
    const deadline = setTimeout(() => socket.destroy(), rejectionMs).unref();
    socket.once('close', () => {
      open -= 1;
      clearTimeout(deadline);
    });
    socket.resume().end(response);
  };
}
