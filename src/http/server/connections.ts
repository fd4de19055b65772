/** The connections of a server: the requests that are open on each, a few at a time, and which of them are idle. */
import type { RequestListener, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

export interface Connection {
  readonly socket: Socket;
  /** Of the requests that have been read: the responses that the client has not taken. */
  readonly responses: ReadonlySet<ServerResponse>;
}

export interface Connections {
  /** For the `request` event. */
  readonly serve: RequestListener;
  /** Begins with a connection that speaks HTTP by now. */
  readonly add: (socket: Socket) => void;
  readonly all: () => Iterable<Connection>;
}

export interface ConnectionsOptions {
  readonly handler: RequestListener;
  /** How many requests of a connection are open at once. */
  readonly pipelineMax: number;
}

/** Over all connections of a server. Each takes about 1.5 KB, and a client may send 2,500 in what is read at once. */
const waitingMax = 10_000;

/**
 * Node serves all pipelined requests of a connection at once, and their answers wait in memory for their turn. Here a
 * request waits until fewer than `pipelineMax` are open before it, and the connection is not read in the meantime. An
 * answer that the client does not take stays open. What has been read by then waits as requests: a connection that
 * brings one beyond `waitingMax` ends.
 */
export function createConnections({ handler, pipelineMax }: ConnectionsOptions): Connections {
  const connections = new Map<Socket, Pipeline>();
  let waitingCount = 0;

  function openPipeline(socket: Pausable): Pipeline {
    const responses = new Set<ServerResponse>();
    const waiting: (() => void)[] = [];

    function wait(begin: () => void): void {
      if (waitingCount >= waitingMax) return void socket.destroy();
      waitingCount += 1;
      waiting.push(begin);
      socket.pause();
    }

    function leave(response: ServerResponse): void {
      responses.delete(response);
      if (waiting.length === 0 || socket.destroyed) return;
      while (waiting.length > 0 && responses.size - waiting.length < pipelineMax) {
        waitingCount -= 1;
        waiting.shift()?.();
      }
      // Node resumes by itself what it has paused.
      if (waiting.length === 0 && socket._paused !== true) socket.resume();
    }

    socket.once('close', () => {
      waitingCount -= waiting.length;
      connections.delete(socket);
    });
    return {
      socket,
      responses,
      enter(response, begin) {
        responses.add(response);
        response.once('close', () => leave(response));
        if (responses.size <= pipelineMax) begin();
        else wait(begin);
      },
    };
  }

  return Object.freeze({
    serve(request, response) {
      connections.get(request.socket)?.enter(response, () => handler(request, response));
    },
    add: (socket) => void connections.set(socket, openPipeline(socket)),
    all: () => connections.values(),
  } satisfies Connections);
}

interface Pipeline extends Connection {
  /** Calls `begin` when it is the request's turn. */
  readonly enter: (response: ServerResponse, begin: () => void) => void;
}

/** `_paused` is Node's own, while the client does not take what was written to it. */
interface Pausable extends Socket {
  readonly _paused?: boolean;
}
