/** The connections of a server: the requests that are open on each, a few at a time, and which of them are idle. */
import type { RequestListener, Server, ServerResponse } from 'node:http';
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

/**
 * Node serves all pipelined requests of a connection at once, and their answers wait in memory for their turn. Here a
 * request waits until fewer than `pipelineMax` are open before it, and the connection is not read in the meantime. An
 * answer that the client does not take stays open.
 */
export function createConnections(server: Server, { handler, pipelineMax }: ConnectionsOptions): Connections {
  const connections = new Map<Socket, Pipeline>();
  // The connection leaves HTTP with what has been read of it.
  server.prependListener('upgrade', (_request, socket) => connections.get(socket as Socket)?.release());
  return Object.freeze({
    serve(request, response) {
      connections.get(request.socket)?.enter(response, () => handler(request, response));
    },
    add(socket) {
      connections.set(socket, openPipeline(socket, pipelineMax));
      socket.once('close', () => connections.delete(socket));
    },
    all: () => connections.values(),
  } satisfies Connections);
}

interface Pipeline extends Connection {
  /** Calls `begin` when it is the request's turn. */
  readonly enter: (response: ServerResponse, begin: () => void) => void;
  /** Gives back what has been read and not yet parsed. */
  readonly release: () => void;
}

function openPipeline(socket: Socket, pipelineMax: number): Pipeline {
  const responses = new Set<ServerResponse>();
  const waiting: (() => void)[] = [];
  const input = feedInPieces(socket, () => waiting.length > 0);

  function leave(response: ServerResponse): void {
    responses.delete(response);
    if (waiting.length === 0 || socket.destroyed) return;
    while (waiting.length > 0 && responses.size - waiting.length < pipelineMax) waiting.shift()?.();
    if (waiting.length === 0) input.resume();
  }

  return {
    socket,
    responses,
    enter(response, begin) {
      responses.add(response);
      response.once('close', () => leave(response));
      if (responses.size <= pipelineMax) begin();
      else waiting.push(begin);
    },
    release: input.release,
  };
}

/** Room for the headers of ordinary requests, and for a few hundred of the smallest. */
const pieceBytes = 8 * 1024;

/** Node's own, while the client does not take what was written to it. */
interface Pausable extends Socket {
  readonly _paused?: boolean;
}

/**
 * Hands to Node's parser what comes in piece by piece, until `isFull`. It takes a whole read at once otherwise: 64 KiB, with
 * room for thousands of requests, each of which costs 1.5 KB from then on.
 */
function feedInPieces(socket: Pausable, isFull: () => boolean) {
  const [feed] = socket.listeners('data') as ((piece: Buffer) => void)[];
  let rest: Buffer | undefined;

  function take(chunk: Buffer): void {
    rest = chunk;
    while (rest !== undefined && !isFull() && socket._paused !== true && !socket.destroyed) {
      const piece: Buffer = rest.subarray(0, pieceBytes);
      rest = rest.length > pieceBytes ? rest.subarray(pieceBytes) : undefined;
      feed?.(piece);
    }
    if (isFull()) socket.pause();
    giveBack();
  }

  function giveBack(): void {
    if (rest !== undefined && !socket.destroyed) socket.unshift(rest);
    rest = undefined;
  }

  if (feed !== undefined) socket.removeListener('data', feed).on('data', take);
  return {
    /** Unless Node has paused the socket: then it resumes it by itself. */
    resume: () => void (socket._paused !== true && socket.resume()),
    release() {
      socket.removeListener('data', take);
      giveBack();
    },
  };
}
