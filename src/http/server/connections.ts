/** Tracks the connections of a server, bounds the pipelined requests on each, and knows which ones are idle. */
import type { RequestListener, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { readMethods } from '../respond.ts';
import { announcesBody } from './node-fixes.ts';

export interface Connection {
  readonly socket: Socket;
  /** Responses that are queued, in progress, or not yet fully received by the client, in the order of the requests. */
  readonly responses: readonly ServerResponse[];
  /** When the last response was finished or, before any request, the connection was opened (`performance.now()`). */
  readonly idleSinceMs: number;
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
const defaultWaitingMax = 10_000;

/**
 * Node handles all pipelined requests of a connection concurrently and buffers their responses in memory. Here, at most
 * `pipelineMax` requests run concurrently, counting those whose response the client has not read. A request that may
 * change something, or has a body, runs alone: the next one may depend on it (RFC 9112 section 9.3.2), and may never get a
 * response if its body is faulty. Node still reads and parses the requests that wait, because it resumes a paused
 * connection after each request. A connection that exceeds `waitingMax` is therefore closed.
 */
export function createConnections(server: Server, options: ConnectionsOptions): Connections {
  const { handler, pipelineMax, waitingMax = defaultWaitingMax, setIdle } = options;
  const connections = new Map<Socket, Pipeline>();
  let waitingCount = 0;
  let isDraining = false;

  function openPipeline(socket: Socket): Pipeline {
    const responses: ServerResponse[] = [];
    const waiting: (() => void)[] = [];
    let refusal: Refusal | undefined;
    let idleSinceMs = performance.now();
    let isResumeScheduled = false;

    function beginInTurn(begin: () => void): void {
      if (waiting.length === 0 && mayBegin(responses.length - 1)) return void begin();
      if (waitingCount >= waitingMax) return void socket.destroy();
      waitingCount += 1;
      waiting.push(begin);
    }

    /** `running`: the number of requests that run, which is the index of the next one. */
    function mayBegin(running: number): boolean {
      const previous = responses[running - 1];
      if (previous === undefined) return true;
      const next = responses[running];
      return running < pipelineMax && runsBesideOthers(previous) && runsBesideOthers(next) && !hasSentClose(previous);
    }

    function removeResponse(response: ServerResponse): void {
      responses.splice(responses.indexOf(response), 1);
      if (responses.length === 0) {
        idleSinceMs = performance.now();
        setIdle?.(socket, true);
      }
      endInTurn();
      if (waiting.length === 0 || isResumeScheduled) return;
      isResumeScheduled = true;
      setImmediate(resumeWaiting);
    }

    function endInTurn(): void {
      if (refusal === undefined || !socket.writable) return;
      const [first] = responses;
      if (first === undefined || first === refusal.response) refusal.end();
    }

    /** Runs in a separate turn of the event loop, so that a long pipeline cannot starve all other connections. */
    function resumeWaiting(): void {
      isResumeScheduled = false;
      if (socket.destroyed) return;
      while (waiting.length > 0 && mayBegin(responses.length - waiting.length)) {
        waitingCount -= 1;
        waiting.shift()?.();
      }
    }

    socket.once('close', () => {
      waitingCount -= waiting.length;
      remove(socket);
    });
    return {
      socket,
      responses,
      get idleSinceMs() {
        return idleSinceMs;
      },
      refuse(end) {
        const last = responses.at(-1);
        refusal = { end, response: last?.req.complete === false ? last : undefined };
        endInTurn();
      },
      enter(response, begin) {
        // The head was completed after the refusal. The request must not run, because its error response says that it
        // did not.
        if (refusal !== undefined) return void socket.destroy();
        // Node still parses what it has read after a connection has ended or closed. Such a response might never close.
        if (!socket.writable || hasSentClose(responses.at(-1 - waiting.length))) return;
        if (responses.length === 0) setIdle?.(socket, false);
        responses.push(response);
        // `close` is emitted only once, so the overhead of `once` is not needed.
        response.on('close', () => removeResponse(response));
        beginInTurn(begin);
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
      if (isDraining && connection !== undefined) makeLast(response, connection);
      connection?.enter(response, () => handler(request, response));
    },
    add: (socket) => void connections.set(socket, openPipeline(socket)),
    all: () => connections.values(),
    refuse: (socket, end) => connections.get(socket as Socket)?.refuse(end),
    drain() {
      isDraining = true;
      for (const { responses } of connections.values()) {
        const last = responses.at(-1);
        if (last?.headersSent === false) last.shouldKeepAlive = false;
      }
    },
  } satisfies Connections);
}

/** The client then knows that no later request was executed (RFC 9112 section 9.6). */
function hasSentClose(response: ServerResponse | undefined): boolean {
  if (response?.headersSent !== true) return false;
  return !response.shouldKeepAlive || /\bclose\b/i.test(String(response.getHeader('connection')));
}

function runsBesideOthers(response: ServerResponse | undefined): boolean {
  return response !== undefined && readMethods.includes(response.req.method ?? '') && !announcesBody(response.req);
}

/** Makes a response the last one of its connection, instead of the one before it. */
function makeLast(response: ServerResponse, { responses }: Connection): void {
  const last = responses.at(-1);
  if (last?.headersSent === false) last.shouldKeepAlive = true;
  response.shouldKeepAlive = false;
}

interface Refusal {
  readonly end: () => void;
  /** The response to the request with the faulty body. Undefined if the fault is in a head. */
  readonly response: ServerResponse | undefined;
}

interface Pipeline extends Connection {
  readonly refuse: (end: () => void) => void;
  /** Calls `begin` when it is the request's turn. */
  readonly enter: (response: ServerResponse, begin: () => void) => void;
}
