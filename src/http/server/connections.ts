/** Tracks the connections of a server, bounds the pipelined requests on each, and knows which ones are idle. */
import type { RequestListener, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { readMethods } from '../respond.ts';
import { announcesBody } from './node-fixes.ts';

export interface Connection {
  readonly socket: Socket;
  /** The requests that wait, run, or whose response the client has not fully received. */
  readonly requestCount: () => number;
  /** When the last response was finished or, before any request, the connection was opened (`performance.now()`). */
  readonly idleSinceMs: () => number;
  /** Closes a connection without a request. */
  readonly end: () => void;
}

export interface Connections {
  /** For the `request` event. */
  readonly serve: RequestListener;
  /** Adds a connection when it is ready for HTTP, so after a TLS handshake. */
  readonly add: (socket: Socket) => void;
  readonly all: () => Iterable<Connection>;
  /** Accepts no further requests. Calls `end` after the responses to earlier requests, unless the connection closes. */
  readonly refuse: (socket: Duplex, end: () => void) => void;
  /** Starts shutdown: from now on, the last response of each connection carries `Connection: close`. */
  readonly drain: () => void;
}

export interface ConnectionsOptions {
  readonly handler: RequestListener;
  /** The number of requests of one connection that are processed concurrently. */
  readonly pipelineMax: number;
  /** The number of pipelined requests that may wait, over all connections. @default 10_000 */
  readonly waitingMax?: number | undefined;
  /** Called when a connection becomes idle or busy. */
  readonly setIdle?: ((socket: Socket, isIdle: boolean) => void) | undefined;
}

/** A waiting request takes about 1.5 KB, and a single read may contain 2,500 of them. */
export const waitingMaxDefault = 10_000;

/**
 * Node handles all pipelined requests of a connection concurrently and buffers their responses in memory. Here, at most
 * `pipelineMax` requests run concurrently, counting those whose response the client has not read. A request that may
 * change something, or has a body, runs alone: the next one may depend on it (RFC 9112 section 9.3.2), and may never get a
 * response if its body is faulty. Node still reads and parses the requests that wait, because it resumes a paused
 * connection after each request. A connection that exceeds `waitingMax` is therefore closed.
 */
export function createConnections(server: Server, options: ConnectionsOptions): Connections {
  const { handler, pipelineMax, waitingMax = waitingMaxDefault, setIdle } = options;
  const connections = new Map<Socket, PipelinedConnection>();
  let waitingCount = 0;
  let isDraining = false;

  function openConnection(socket: Socket): PipelinedConnection {
    const responses: ServerResponse[] = [];
    /** The requests of the first responses run. The other requests wait. */
    let runningCount = 0;
    let isTurnScheduled = false;
    let refusal: Refusal | undefined;
    let idleSinceMs = performance.now();

    function enter(response: ServerResponse): void {
      // The head was completed after the refusal. The request must not run, because its error response says that it
      // did not.
      if (refusal !== undefined) socket.destroy();
      // Node still parses what it has read after a connection has ended or closed. Such a response might never close.
      else if (socket.writable) runInTurn(response);
    }

    function runInTurn(response: ServerResponse): void {
      const waits = responses.length > runningCount || !mayRun(response);
      if (waits && waitingCount >= waitingMax) return void socket.destroy();
      if (responses.length === 0) setIdle?.(socket, false);
      responses.push(response);
      if (waits) waitingCount += 1;
      else run(response);
    }

    /** Whether the next request may run beside those that run already. */
    function mayRun(next: ServerResponse): boolean {
      const previous = responses[runningCount - 1];
      if (previous === undefined) return true;
      const mayOverlap = runsBesideOthers(previous) && runsBesideOthers(next);
      return mayOverlap && runningCount < pipelineMax && !hasSentClose(previous);
    }

    function run(response: ServerResponse): void {
      runningCount += 1;
      // `close` is emitted only once, so the overhead of `once` is not needed.
      response.on('close', () => leave(response));
      handler(response.req, response);
    }

    function leave(response: ServerResponse): void {
      responses.splice(responses.indexOf(response), 1);
      runningCount -= 1;
      if (responses.length === 0) {
        idleSinceMs = performance.now();
        setIdle?.(socket, true);
      }
      endIfRefused();
      if (responses.length === runningCount || isTurnScheduled) return;
      isTurnScheduled = true;
      setImmediate(runWaiting);
    }

    /** Runs in a separate turn of the event loop, so that a long pipeline cannot starve all other connections. */
    function runWaiting(): void {
      isTurnScheduled = false;
      if (!socket.writable) return;
      for (let next = responses[runningCount]; next && mayRun(next); next = responses[runningCount]) {
        waitingCount -= 1;
        run(next);
      }
    }

    /** Waits for the responses to earlier requests. */
    function endIfRefused(): void {
      if (refusal === undefined || !socket.writable) return;
      const [first] = responses;
      if (first === undefined || first === refusal.response) refusal.end();
    }

    socket.once('close', () => {
      waitingCount -= responses.length - runningCount;
      remove(socket);
    });
    return {
      socket,
      responses,
      requestCount: () => responses.length,
      end: () => socket.destroy(),
      enter,
      idleSinceMs: () => idleSinceMs,
      refuse(end) {
        const last = responses.at(-1);
        refusal = { end, response: last?.req.complete === false ? last : undefined };
        endIfRefused();
      },
    };
  }

  function remove(socket: Socket): void {
    connections.delete(socket);
    setIdle?.(socket, false);
  }

  // After an upgrade, the connection does not carry HTTP.
  server.prependListener('upgrade', (_request, socket) => remove(socket as Socket));
  // Node detaches the connection even in the middle of a response, which could then never be completed.
  server.prependListener('connect', (_request, socket) => {
    if (connections.get(socket as Socket)?.responses.length !== 0) socket.destroy();
  });
  return Object.freeze({
    serve(request, response) {
      const connection = connections.get(request.socket);
      if (isDraining) {
        // This response is the last one, instead of the one before it.
        setKeepAlive(connection?.responses.at(-1), true);
        setKeepAlive(response, false);
      }
      connection?.enter(response);
    },
    add: (socket) => void connections.set(socket, openConnection(socket)),
    all: () => connections.values(),
    refuse: (socket, end) => connections.get(socket as Socket)?.refuse(end),
    drain() {
      isDraining = true;
      for (const { responses } of connections.values()) setKeepAlive(responses.at(-1), false);
    },
  } satisfies Connections);
}

/** The client then knows that no later request was executed (RFC 9112 section 9.6). */
function hasSentClose(response: ServerResponse | undefined): boolean {
  if (response?.headersSent !== true) return false;
  return !response.shouldKeepAlive || /\bclose\b/i.test(String(response.getHeader('connection')));
}

function runsBesideOthers({ req }: ServerResponse): boolean {
  return readMethods.includes(req.method ?? '') && !announcesBody(req);
}

/** Does nothing after the head has been sent. */
function setKeepAlive(response: ServerResponse | undefined, keepsAlive: boolean): void {
  if (response?.headersSent === false) response.shouldKeepAlive = keepsAlive;
}

interface Refusal {
  readonly end: () => void;
  /** The response to the request with the faulty body. Undefined if the fault is in a head. */
  readonly response: ServerResponse | undefined;
}

interface PipelinedConnection extends Connection {
  /** In the order of the requests. */
  readonly responses: readonly ServerResponse[];
  /** Runs the request of this response when it is its turn. */
  readonly enter: (response: ServerResponse) => void;
  readonly refuse: (end: () => void) => void;
}
