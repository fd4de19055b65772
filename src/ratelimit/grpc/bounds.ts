/** Bounds what clients of the rate-limit port hold open: connections, calls that do not end, and messages that do not arrive. */
import type { Socket } from 'node:net';
import type { Responder, ServerInterceptor } from '@grpc/grpc-js';
import type { PortRefusal, ReportRefusal } from './refusals.ts';

export interface PortBounds {
  /** Connections at once. Beyond, the newest without a call makes room for the next. @default 1_000 */
  readonly connectionsMax: number;
  /** Calls of one connection at once; HTTP/2 announces the number to the client. @default 256 */
  readonly callsMax: number;
  /** For the first bytes of a connection, which every HTTP/2 client sends at once. @default 10_000 */
  readonly silentMs: number;
  /** For a connection without a call. @default 300_000 */
  readonly idleMs: number;
  /** For a call, until its client has taken the whole answer; watches of the health may last. @default 30_000 */
  readonly callMs: number;
  /** Calls at once whose message has not arrived, over all connections: each may hold a whole message. @default 256 */
  readonly arrivingMax: number;
  /** For a message: one that comes byte by byte makes us keep an object of 150 bytes for each. @default 5_000 */
  readonly arrivingMs: number;
}

export const portBounds: PortBounds = Object.freeze({
  connectionsMax: 1_000,
  callsMax: 256,
  silentMs: 10_000,
  idleMs: 300_000,
  callMs: 30_000,
  arrivingMax: 256,
  arrivingMs: 5_000,
});

/** A reflection client sends a message for each symbol it looks up, and grpc-js queues every answer that it does not take. */
const reflectionsMax = 16;
const messagesMax = 100;

export interface BoundedPort {
  /** False: there is no room for the connection, and it is destroyed. */
  readonly admit: (socket: Socket) => boolean;
  /** Watches every call of the server. */
  readonly interceptor: ServerInterceptor;
  /** Those that are open. */
  readonly sockets: () => Iterable<Socket>;
  readonly close: () => void;
}

type Grpc = Pick<typeof import('@grpc/grpc-js'), 'ServerInterceptingCall' | 'status'>;
type Peer = ReturnType<Parameters<ServerInterceptor>[1]['getConnectionInfo']>;

interface OpenCall {
  readonly startedMs: number;
  readonly peer: Peer;
}

export function createBoundedPort(grpc: Grpc, bounds: PortBounds, report: ReportRefusal): BoundedPort {
  const openedMs = new Map<Socket, number>();
  // In the order of their start: the first is the oldest.
  const calls = new Set<OpenCall>();
  const arriving = new Set<OpenCall>();
  let lastSweepMs = performance.now();

  function admit(socket: Socket): boolean {
    if (openedMs.size >= bounds.connectionsMax && !makeRoom()) {
      report('too_many');
      socket.destroy();
      return false;
    }
    openedMs.set(socket, performance.now());
    socket.once('close', () => openedMs.delete(socket));
    return true;
  }

  /** Closes the newest connection without a call, so that those who open many close their own. */
  function makeRoom(): boolean {
    const busy = new Set([...calls].map(({ peer }) => nameOf(peer)));
    const idle = [...openedMs.keys()].findLast((socket) => !busy.has(nameOf(socket)));
    if (idle !== undefined) closeSocket(idle, 'too_many');
    return idle !== undefined;
  }

  function closeSocket(socket: Socket, reason: PortRefusal): void {
    report(reason);
    openedMs.delete(socket);
    socket.destroy();
  }

  function disconnect(call: OpenCall): void {
    end(call);
    const name = nameOf(call.peer);
    for (const socket of openedMs.keys()) if (nameOf(socket) === name) closeSocket(socket, 'unfinished');
  }

  function begin(peer: Peer): OpenCall {
    const call = { startedMs: performance.now(), peer };
    calls.add(call);
    arriving.add(call);
    const [oldest] = arriving;
    if (oldest !== undefined && arriving.size > bounds.arrivingMax) disconnect(oldest);
    return call;
  }

  function end(call: OpenCall): void {
    calls.delete(call);
    arriving.delete(call);
  }

  function disconnectFrom(open: ReadonlySet<OpenCall>, startedMs: number): void {
    for (const call of open) {
      if (call.startedMs > startedMs) break;
      disconnect(call);
    }
  }

  function sweep(): void {
    const nowMs = performance.now();
    // What arrived while this process was busy has been read since the sweep before, not before this one.
    disconnectFrom(calls, lastSweepMs - bounds.callMs);
    disconnectFrom(arriving, lastSweepMs - bounds.arrivingMs);
    lastSweepMs = nowMs;
    for (const [socket, sinceMs] of openedMs)
      if (nowMs - sinceMs >= bounds.silentMs && socket.bytesRead < prefaceBytes) closeSocket(socket, 'silent');
  }

  const timer = setInterval(sweep, Math.min(1_000, bounds.silentMs, bounds.callMs, bounds.arrivingMs)).unref();
  return Object.freeze({
    admit,
    interceptor: createInterceptor(grpc, { begin, arrived: (call) => arriving.delete(call), end, disconnect }),
    sockets: () => openedMs.keys(),
    close: () => clearInterval(timer),
  });
}

/** `PRI * HTTP/2.0` and what follows it (RFC 9113 section 3.4). */
const prefaceBytes = 24;

function nameOf({ remoteAddress, remotePort }: Peer): string {
  return `${remoteAddress} ${remotePort}`;
}

interface CallEvents {
  readonly begin: (peer: Peer) => OpenCall;
  readonly arrived: (call: OpenCall) => void;
  readonly end: (call: OpenCall) => void;
  readonly disconnect: (call: OpenCall) => void;
}

function createInterceptor({ ServerInterceptingCall, status }: Grpc, events: CallEvents): ServerInterceptor {
  const tooMany = { code: status.RESOURCE_EXHAUSTED, details: `there are ${reflectionsMax} reflections already` };
  let reflections = 0;
  return ({ requestStream: isReflection, responseStream }, call) => {
    const isWatch = responseStream && !isReflection;
    let messages = 0;
    let open: OpenCall | undefined;

    // From here on `cancel` is certain, which grpc-js calls at the end of every call.
    function begin(): boolean {
      if (isReflection && reflections >= reflectionsMax) {
        call.sendStatus(tooMany);
        return false;
      }
      if (isReflection) reflections += 1;
      open = events.begin(call.getConnectionInfo());
      return true;
    }

    function receive(current: OpenCall): void {
      messages += 1;
      if (messages > messagesMax) events.disconnect(current);
      else events[isWatch ? 'end' : 'arrived'](current);
    }

    function end(): void {
      if (open === undefined) return;
      events.end(open);
      if (isReflection) reflections -= 1;
      open = undefined;
    }

    const start: Responder['start'] = (next) =>
      next({
        onReceiveMetadata: (metadata, pass) => begin() && pass(metadata),
        onReceiveMessage(message, pass) {
          if (open !== undefined) receive(open);
          pass(message);
        },
        onReceiveHalfClose: (pass) => pass(),
        onCancel: end,
      });
    return new ServerInterceptingCall(call, { start });
  };
}
