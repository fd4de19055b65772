/** The connections of a server: the requests that are open on each, a few at a time, and which of them are idle. */
import type { RequestListener, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';

export interface Connection {
  readonly socket: Socket;
  /** The responses to requests that have been read, as long as the client has not taken them. */
  readonly responses: ReadonlySet<ServerResponse>;
  /** By `performance.now()`: when the last of them was gone, or the connection came. */
  readonly idleSinceMs: number;
}

export interface Connections {
  /** For the `request` event. */
  readonly serve: RequestListener;
  /** Adds a connection, once it speaks HTTP. */
  readonly add: (socket: Socket) => void;
  readonly all: () => Iterable<Connection>;
  /** Takes no other request. Calls `end` when those before the faulty one are answered, unless that closes the connection. */
  readonly refuse: (socket: Duplex, end: () => void) => void;
  /** From now on the last answer of each connection says that it is the last. */
  readonly leave: () => void;
}

export interface ConnectionsOptions {
  readonly handler: RequestListener;
  /** How many requests of a connection are open at once. */
  readonly pipelineMax: number;
  /** How many requests wait, over all connections. @default 10_000 */
  readonly waitingMax?: number | undefined;
  /** Called when a connection becomes idle, and when it no longer is. */
  readonly setIdle?: ((socket: Socket, isIdle: boolean) => void) | undefined;
}

/** Each takes about 1.5 KB, and a client may send 2,500 in what is read at once. */
const defaultWaitingMax = 10_000;

/**
 * Node serves all pipelined requests of a connection at once, and their answers wait in memory for their turn. Here a
 * request waits until fewer than `pipelineMax` are open before it; an answer that the client does not take stays open. The
 * connection is paused meanwhile, but Node may read on where a message ends. What it reads waits as requests: a
 * connection that brings one beyond `waitingMax` ends.
 */
export function createConnections(server: Server, options: ConnectionsOptions): Connections {
  const { handler, pipelineMax, waitingMax = defaultWaitingMax, setIdle } = options;
  const connections = new Map<Socket, Pipeline>();
  let waitingCount = 0;
  let isLeaving = false;

  function openPipeline(socket: Pausable): Pipeline {
    const responses = new Set<ServerResponse>();
    const waiting: (() => void)[] = [];
    let refusal: Refusal | undefined;
    let idleSinceMs = performance.now();
    let isGoingOn = false;

    function wait(begin: () => void): void {
      if (waitingCount >= waitingMax) return void socket.destroy();
      waitingCount += 1;
      waiting.push(begin);
      socket.pause();
    }

    function leave(response: ServerResponse): void {
      responses.delete(response);
      if (responses.size === 0) {
        idleSinceMs = performance.now();
        setIdle?.(socket, true);
      }
      endInTurn();
      if (waiting.length === 0 || isGoingOn) return;
      isGoingOn = true;
      setImmediate(goOn);
    }

    function endInTurn(): void {
      if (refusal === undefined || !socket.writable) return;
      const [first] = responses;
      if (first === undefined || first === refusal.response) refusal.end();
    }

    /** In a separate turn of the event loop: one answer after the other would keep all other connections waiting. */
    function goOn(): void {
      isGoingOn = false;
      if (socket.destroyed) return;
      while (waiting.length > 0 && responses.size - waiting.length < pipelineMax) {
        waitingCount -= 1;
        waiting.shift()?.();
      }
      // Node resumes by itself what it has paused.
      if (waiting.length === 0 && socket._paused !== true) socket.resume();
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
        const last = [...responses].at(-1);
        refusal = { end, response: last?.req.complete === false ? last : undefined };
        endInTurn();
      },
      enter(response, begin) {
        // The rest of a head that was late: the client will read that the request was not carried out.
        if (refusal !== undefined) return void socket.destroy();
        if (responses.size === 0) setIdle?.(socket, false);
        responses.add(response);
        // Comes once; `once` would cost a wrapper and its removal.
        response.on('close', () => leave(response));
        if (responses.size <= pipelineMax) begin();
        else wait(begin);
      },
    };
  }

  function remove(socket: Socket): void {
    connections.delete(socket);
    setIdle?.(socket, false);
  }

  // From then on it does not speak HTTP.
  server.prependListener('upgrade', (_request, socket) => remove(socket as Socket));
  // Node lets go of it in the middle of an answer, too.
  server.prependListener('connect', (_request, socket) => {
    if (connections.get(socket as Socket)?.responses.size !== 0) socket.destroy();
  });
  return Object.freeze({
    serve(request, response) {
      const connection = connections.get(request.socket);
      if (isLeaving && connection !== undefined && !followsAs(response, connection)) return;
      connection?.enter(response, () => handler(request, response));
    },
    add: (socket) => void connections.set(socket, openPipeline(socket)),
    all: () => connections.values(),
    refuse: (socket, end) => connections.get(socket as Socket)?.refuse(end),
    leave() {
      isLeaving = true;
      for (const { responses } of connections.values()) {
        const last = [...responses].at(-1);
        if (last !== undefined) last.shouldKeepAlive = false;
      }
    },
  } satisfies Connections);
}

/**
 * Makes a response the last one of its connection in place of the one before it. False when that has said `Connection: close`
 * already: then the client knows that no later request was carried out.
 */
function followsAs(response: ServerResponse, { responses }: Connection): boolean {
  const last = [...responses].at(-1);
  if (last?.shouldKeepAlive === false && last.headersSent) return false;
  if (last !== undefined) last.shouldKeepAlive = true;
  response.shouldKeepAlive = false;
  return true;
}

interface Refusal {
  readonly end: () => void;
  /** To the request in whose body the fault is; undefined: it is in a head. */
  readonly response: ServerResponse | undefined;
}

interface Pipeline extends Connection {
  readonly refuse: (end: () => void) => void;
  /** Calls `begin` when it is the request's turn. */
  readonly enter: (response: ServerResponse, begin: () => void) => void;
}

/** `_paused` is Node's own, while the client does not take what was written to it. */
interface Pausable extends Socket {
  readonly _paused?: boolean;
}
