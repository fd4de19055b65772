/** Bounds on the connections, unfinished calls and incomplete requests of the rate-limit port, and what it refuses. */
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { ServerHttp2Stream } from 'node:http2';
import type { Socket } from 'node:net';
import type { Responder, ServerInterceptor } from '@grpc/grpc-js';
import { peerOf } from '#foundation';

export interface PortBounds {
  /** Concurrent connections. Beyond this, one without a call is closed to admit another. @default 1_000 */
  readonly connectionsMax: number;
  /** Concurrent calls of a connection, announced in the HTTP/2 settings. @default 256 */
  readonly callsMax: number;
  /** How long a new connection may take to send the HTTP/2 preface. @default 10_000 */
  readonly silentMs: number;
  /** How long a connection may stay open without a call. @default 300_000 */
  readonly idleMs: number;
  /** How long a call may last until the client has read the response. Health watches are exempt. @default 30_000 */
  readonly callMs: number;
  /** Concurrent calls over all connections. Each uses 10 KB, or 20 KB with large headers. @default 10_000 */
  readonly openMax: number;
  /** Concurrent calls with an incomplete request, over all connections. Each may buffer a message. @default 256 */
  readonly arrivingMax: number;
  /** How long a request may take to arrive. If sent byte by byte, each costs an object of 150 bytes. @default 5_000 */
  readonly arrivingMs: number;
}

export const portBounds: PortBounds = Object.freeze({
  connectionsMax: 1_000,
  callsMax: 256,
  silentMs: 10_000,
  idleMs: 300_000,
  callMs: 30_000,
  openMax: 10_000,
  arrivingMax: 256,
  arrivingMs: 5_000,
});

/** Why the port closes connections and rejects calls: each reason with its text in the log. */
export const portRefusals = Object.freeze({
  too_many: 'too many connections',
  silent: 'connections that send nothing',
  unfinished: 'calls that do not end',
  invalid: 'requests without a domain, with a number out of range, or beyond the bounds',
  exhausted: 'messages or headers that are too large, or too many reflection streams or watches',
  unimplemented: 'unknown methods or compressed messages',
  unreadable: 'malformed messages',
});

export type PortRefusal = keyof typeof portRefusals;

/** Called for every connection that the port closes and every call that it rejects. */
export type ReportRefusal = (reason: PortRefusal) => void;

/** A reflection client sends a message for every symbol it looks up. grpc-js queues responses that it does not read. */
const reflectionsMax = 16;
const messagesMax = 100;

export interface BoundedPort {
  /** Registers a connection. If there is no room, destroys it and returns false. */
  readonly admit: (socket: Socket) => boolean;
  /** Tracks every call of the server. */
  readonly interceptor: ServerInterceptor;
  /** Returns the open connections. */
  readonly sockets: () => Iterable<Socket>;
  readonly close: () => void;
}

interface PortEvents {
  readonly report: ReportRefusal;
  /** Called when a connection becomes busy with its first call, or idle after its last one. */
  readonly setIdle: (socket: Socket, isIdle: boolean) => void;
}

type Grpc = Pick<typeof import('@grpc/grpc-js'), 'ServerInterceptingCall' | 'status'>;
type Peer = ReturnType<Parameters<ServerInterceptor>[1]['getConnectionInfo']>;

interface Connection {
  readonly peer: string;
  readonly socket: Socket;
  readonly openedMs: number;
  /** The number of open calls. */
  calls: number;
  hasCalled: boolean;
}

interface OpenCall {
  readonly startedMs: number;
  /** Undefined if it has closed. */
  readonly connection: Connection | undefined;
}

export function createBoundedPort(grpc: Grpc, bounds: PortBounds, { report, setIdle }: PortEvents): BoundedPort {
  // By peer, because a call does not know its socket.
  const connections = new Map<string, Connection>();
  // Like the connections, both sets are in order of start time, oldest first.
  const calls = new Set<OpenCall>();
  const arriving = new Set<OpenCall>();
  let lastSweepMs = performance.now();

  function admit(socket: Socket): boolean {
    if (connections.size >= bounds.connectionsMax && !makeRoom()) {
      report('too_many');
      socket.destroy();
      return false;
    }
    const peer = peerOf(socket);
    const connection = { peer, socket, openedMs: performance.now(), calls: 0, hasCalled: false };
    connections.set(peer, connection);
    socket.once('close', () => {
      if (connections.get(peer) === connection) connections.delete(peer);
    });
    return true;
  }

  /**
   * Closes the oldest connection that has never made a call. Without one, closes the newest without a call, so that a
   * client that opens many loses its own.
   */
  function makeRoom(): boolean {
    const all = [...connections.values()];
    const idle = all.find(({ hasCalled }) => !hasCalled) ?? all.findLast(({ calls }) => calls === 0);
    if (idle !== undefined) close(idle, 'too_many');
    return idle !== undefined;
  }

  function close({ peer, socket }: Connection, reason: PortRefusal): void {
    // The other calls of a closed connection end a little later.
    if (socket.destroyed) return;
    connections.delete(peer);
    report(reason);
    socket.destroy();
  }

  function disconnect(call: OpenCall): void {
    end(call);
    if (call.connection !== undefined) close(call.connection, 'unfinished');
  }

  function begin(peer: Peer): OpenCall {
    const connection = connections.get(peerOf(peer));
    if (connection !== undefined) changeCalls(connection, 1);
    const call = { startedMs: performance.now(), connection };
    add(call, calls, bounds.openMax);
    add(call, arriving, bounds.arrivingMax);
    return call;
  }

  function add(call: OpenCall, open: Set<OpenCall>, max: number): void {
    open.add(call);
    const [oldest] = open;
    if (oldest !== undefined && open.size > max) disconnect(oldest);
  }

  function end(call: OpenCall): void {
    if (calls.delete(call) && call.connection !== undefined) changeCalls(call.connection, -1);
    arriving.delete(call);
  }

  function changeCalls(connection: Connection, change: 1 | -1): void {
    connection.calls += change;
    connection.hasCalled = true;
    const isFirstOrLast = connection.calls === (change === 1 ? 1 : 0);
    if (isFirstOrLast) setIdle(connection.socket, connection.calls === 0);
  }

  function disconnectFrom(open: ReadonlySet<OpenCall>, startedMs: number): void {
    for (const call of open) {
      if (call.startedMs > startedMs) break;
      disconnect(call);
    }
  }

  function sweep(): void {
    const nowMs = performance.now();
    // Data that arrived while this process was busy may not have been read yet, so measure up to the previous sweep.
    disconnectFrom(calls, lastSweepMs - bounds.callMs);
    disconnectFrom(arriving, lastSweepMs - bounds.arrivingMs);
    lastSweepMs = nowMs;
    for (const connection of connections.values())
      if (nowMs - connection.openedMs >= bounds.silentMs && connection.socket.bytesRead < prefaceBytes)
        close(connection, 'silent');
  }

  const timer = setInterval(sweep, Math.min(1_000, bounds.silentMs, bounds.callMs, bounds.arrivingMs)).unref();
  return Object.freeze({
    admit,
    interceptor: createInterceptor(grpc, { begin, arrived: (call) => arriving.delete(call), end, disconnect }),
    sockets: () => Array.from(connections.values(), ({ socket }) => socket),
    close: () => clearInterval(timer),
  });
}

/** The length of the HTTP/2 connection preface, `PRI * HTTP/2.0…` (RFC 9113 section 3.4). */
const prefaceBytes = 24;

/**
 * Overrides a private field of the library, which would decompress all messages of a frame at once: 16 KB can become
 * 16 MB. envoyproxy/ratelimit accepts no compressed messages either.
 */
const refuseCompression = { incomingEncoding: 'other than identity' };

interface CallEvents {
  readonly begin: (peer: Peer) => OpenCall;
  readonly arrived: (call: OpenCall) => void;
  readonly end: (call: OpenCall) => void;
  readonly disconnect: (call: OpenCall) => void;
}

function createInterceptor({ ServerInterceptingCall, status }: Grpc, events: CallEvents): ServerInterceptor {
  const tooMany = {
    code: status.RESOURCE_EXHAUSTED,
    details: `there are already ${reflectionsMax} reflection streams`,
  };
  let reflections = 0;
  return ({ requestStream: isReflection, responseStream }, call) => {
    const isWatch = responseStream && !isReflection;
    Object.assign(call, refuseCompression);
    let messages = 0;
    let open: OpenCall | undefined;

    // grpc-js calls `onCancel` at the end of every call, so `end` is certain to follow.
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
      else if (isReflection) events.arrived(current);
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
        onReceiveHalfClose(pass) {
          // Not earlier, because a call keeps its message until the client has ended its request.
          if (open !== undefined) events[isWatch ? 'end' : 'arrived'](open);
          pass();
        },
        onCancel: end,
      });
    return new ServerInterceptingCall(call, { start });
  };
}

/** The reasons by gRPC status code. */
const refusalsByStatus: Readonly<Record<string, PortRefusal>> = Object.freeze({
  3: 'invalid',
  8: 'exhausted',
  12: 'unimplemented',
  13: 'unreadable',
});

interface StreamHeaders {
  readonly stream: ServerHttp2Stream;
  readonly headers: Record<string, unknown>;
}

/**
 * Until the returned function is called, reports every call that is rejected on this port, closes the streams of those
 * whose client has not ended its request, and rejects calls with headers that are too large. grpc-js rejects many calls
 * without running interceptors, but Node publishes all of them, as responses whose initial headers have a gRPC status.
 */
export function watchStreams(port: number, report: ReportRefusal): () => void {
  const isHere = ({ session }: ServerHttp2Stream) => session?.socket.localPort === port;

  function onRequest(message: unknown): void {
    const { stream, headers } = message as StreamHeaders;
    if (!isHere(stream) || !areTooLarge(headers)) return;
    // grpc-js then rejects the call (415) before it copies the headers.
    delete headers['content-type'];
    report('exhausted');
  }

  function onResponse(message: unknown): void {
    const { stream, headers } = message as StreamHeaders;
    const status = headers['grpc-status'];
    const isEarly = !stream.readableEnded;
    if ((status === undefined && !isEarly) || !isHere(stream)) return;
    if (isEarly) closeAfterResponse(stream, status !== undefined);
    const reason = refusalsByStatus[String(status)];
    if (reason !== undefined) report(reason);
  }

  subscribe(requestChannel, onRequest);
  subscribe(responseChannel, onResponse);
  return () => {
    unsubscribe(requestChannel, onRequest);
    unsubscribe(responseChannel, onResponse);
  };
}

const requestChannel = 'http2.server.stream.created';
const responseChannel = 'http2.server.stream.finish';

/** The same as in gRPC for C++ and Java. */
const headersMax = 8_192;

/**
 * Neither Node nor the settings of HTTP/2 bound the headers well: HPACK compresses repeated ones a thousandfold, and
 * a client need not respect the settings.
 */
function areTooLarge(headers: StreamHeaders['headers']): boolean {
  let length = 0;
  for (const name in headers) length += name.length + String(headers[name]).length;
  return length > headersMax;
}

/** Otherwise the stream would stay open for as long as the client does not end its request (RFC 9113 section 8.1). */
function closeAfterResponse(stream: ServerHttp2Stream, isComplete: boolean): void {
  const close = () => setImmediate(() => !stream.readableEnded && stream.close());
  if (isComplete) close();
  // Node sends the trailers in the next turn of the event loop.
  else stream.once('wantTrailers', () => setImmediate(close));
}
