/** The HTTP/2 connections of a server: serves their streams, and closes what is silent, idle or stalled. */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { ServerHttp2Session, ServerHttp2Stream, ServerOptions } from 'node:http2';
import { createRequire } from 'node:module';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { TLSSocket } from 'node:tls';
import type { Logger } from '#foundation';
import { grpcTypeOf } from '../../grpc/requests.ts';
import { giveUpClient, replaceStatus } from '../../log/final-status.ts';
import { type Problem, problem } from '../../problem.ts';
import { subjectFieldOf } from '../client-certificates.ts';
import { requestLine } from '../client-errors.ts';
import type { Connection } from '../connections.ts';
import { endStreamWithProblem } from '../last-response.ts';
import { limitBodyTime } from '../node-fixes.ts';
import { createThrottledLog } from '../throttled-log.ts';
import type { Upgrades } from '../upgrades.ts';
import { serveConnect } from './connect.ts';
import { readHead } from './head.ts';
import { Http2Request, Http2Response, type RequestHead, type StreamPeer, type StreamSocket } from './messages.ts';

export interface Http2Options {
  readonly handler: RequestListener;
  readonly headerBytesMax: number;
  /** How long a connection may take to send its first request. */
  readonly headerTimeoutMs: number;
  /** Limits the time for a body, unless `disableBodyTimeout` was called for the request. */
  readonly requestTimeoutMs: number;
  /** How long a connection without a request is kept. */
  readonly keepAliveTimeoutMs: number;
  /** How long a client may stop reading a response before its stream is reset. 0 means no limit. */
  readonly responseIdleTimeoutMs: number;
  /** Called when a connection becomes idle or busy. */
  readonly setIdle?: ((socket: Socket, isIdle: boolean) => void) | undefined;
  /** @default none: clients cannot ask for another protocol */
  readonly upgrades?: Upgrades | undefined;
  /** Called with each connection, and for each request. */
  readonly onConnection?: ((socket: Socket) => void) | undefined;
  readonly onRequest?: (() => void) | undefined;
  /** Whether a gRPC call that is not served gets a status of gRPC. @default true */
  readonly refusesInGrpc?: boolean | undefined;
  readonly logger?: Pick<Logger, 'warn'> | undefined;
}

export interface Http2Connections {
  /** Serves a connection that begins with the preface of HTTP/2. */
  readonly accept: (socket: Socket) => void;
  readonly all: () => Iterable<Connection>;
  /**
   * Starts shutdown: refuses further requests, and closes each connection after its last response. GOAWAY says which
   * request was the last, so that a client can send later ones again elsewhere. nghttp2 would drop them silently if a
   * GOAWAY that refuses none had been sent before.
   */
  readonly drain: () => void;
  /** Closes a connection at once. Returns false if it is none of HTTP/2. */
  readonly turnAway: (socket: Duplex) => boolean;
}

/** The streams of a connection that may be open. Each is a request. */
const streamsMax = 100;
/** Resets that a client may send at once, and per second after that. Each may have started a request. */
const resetBurst = 100;
const resetRate = 33;
/** As many as Node reads of a request of HTTP/1.1. */
const headerPairsMax = 2000;
/** The most that nghttp2 accepts. What exceeds the setting, but not this, gets a response. */
const headerListBytesMax = 65_535;

const sessionOptions: ServerOptions = {
  settings: { maxConcurrentStreams: streamsMax, maxHeaderListSize: headerListBytesMax },
  streamResetBurst: resetBurst,
  streamResetRate: resetRate,
  maxHeaderListPairs: headerPairsMax,
  // A header that occurs several times is sent as it is, as over HTTP/1.1.
  strictSingleValueFields: false,
};

/** Loaded with the first connection of HTTP/2. */
function loadHttp2(): typeof import('node:http2') {
  return createRequire(import.meta.url)('node:http2') as typeof import('node:http2');
}

export function createHttp2Connections(options: Http2Options): Http2Connections {
  const { headerTimeoutMs, keepAliveTimeoutMs, responseIdleTimeoutMs, setIdle, upgrades, logger } = options;
  const enableConnectProtocol = upgrades !== undefined;
  const connections = new Map<Socket, Session>();
  const log = logger && createThrottledLog(logger, 'a client sent something that is not a valid HTTP request');
  const { refusesInGrpc = true } = options;
  const typeOf: typeof grpcTypeOf = (request) => (refusesInGrpc ? grpcTypeOf(request) : undefined);
  const handler = limitBodyTime(options.handler, options.requestTimeoutMs, onLateBody);
  const timeouts = [headerTimeoutMs, keepAliveTimeoutMs, responseIdleTimeoutMs].filter((timeout) => timeout > 0);
  const sweepMs = Math.min(1000, ...timeouts.map((timeout) => timeout / 2));
  let isDraining = false;
  let sweep: NodeJS.Timeout | undefined;

  function accept(socket: Socket): void {
    const session = openSession(socket, enableConnectProtocol, { onStream, onOpenStreams, onClose, onFault });
    connections.set(socket, session);
    options.onConnection?.(socket);
    if (isDraining) session.end();
    sweep ??= setInterval(closeUnused, sweepMs).unref();
  }

  function onOpenStreams(socket: Socket, count: number): void {
    setIdle?.(socket, count === 0);
  }

  function onClose(socket: Socket): void {
    connections.delete(socket);
    setIdle?.(socket, false);
    if (connections.size > 0) return;
    clearInterval(sweep);
    sweep = undefined;
  }

  function onFault(socket: Socket, error: NodeJS.ErrnoException): void {
    // A client that leaves is no fault.
    if (error.code === 'ECONNRESET' || error.code === 'EPIPE') return;
    log?.(() => ({ client: socket.remoteAddress, code: error.code, reason: error.message }));
  }

  function onStream(stream: StreamSocket, received: readonly string[]): void {
    options.onRequest?.();
    const { head, fault } = readHead(received, options.headerBytesMax);
    Object.assign(stream, { bytesRead: head.bytes, bytesWritten: 0 });
    if (fault === undefined) serve(stream, head);
    else reject(stream, head, fault);
  }

  function serve(stream: StreamSocket, head: RequestHead): void {
    const request = new Http2Request(stream, head);
    const response = new Http2Response(request);
    response.onWrongLength = onWrongLength;
    if (request.headers.expect?.toLowerCase() === '100-continue')
      request.onFirstRead = () => void (response.headersSent || response.writeContinue());
    if (head.connectProtocol === undefined) handler(request, response);
    else serveConnect(upgrades, handler, response);
  }

  function onWrongLength(response: Http2Response, reason: string): void {
    const { method, url } = response.req;
    replaceStatus(response, problem('internal').status);
    logger?.warn({ ...requestLine(method, url), reason }, 'a response is cut off, because its length is wrong');
  }

  function reject(stream: StreamSocket, { method, target, rawHeaders }: RequestHead, fault: Problem): void {
    const { remoteAddress: client } = stream;
    log?.(() => ({ client, status: fault.status, reason: fault.message, ...requestLine(method, target) }));
    stream.on('error', ignore);
    const headers = { 'content-type': rawHeaders[rawHeaders.indexOf('content-type') + 1] };
    endStreamWithProblem(stream, fault, typeOf({ method, headers }));
  }

  /** The client gets 408 unless the response has begun. */
  function onLateBody(request: IncomingMessage, response: ServerResponse): void {
    const late = problem('request-timeout');
    if (response.headersSent) {
      response.destroy();
      return;
    }
    replaceStatus(response, late.status);
    endStreamWithProblem(request.socket as unknown as StreamSocket, late, typeOf(request));
  }

  function closeUnused(): void {
    const nowMs = performance.now();
    for (const session of connections.values()) {
      const isOver = nowMs - session.idleSinceMs() >= (session.isSilent() ? headerTimeoutMs : keepAliveTimeoutMs);
      if (session.isIdle() && isOver) session.end();
      if (responseIdleTimeoutMs > 0) session.resetStalled(nowMs - responseIdleTimeoutMs);
    }
  }

  return Object.freeze({
    accept,
    all: () => connections.values(),
    drain() {
      isDraining = true;
      for (const session of connections.values()) session.end();
    },
    turnAway(socket) {
      const isOurs = connections.has(socket as Socket);
      if (isOurs) socket.destroy();
      return isOurs;
    },
  } satisfies Http2Connections);
}

function ignore(): void {}

interface SessionEvents {
  readonly onStream: (stream: StreamSocket, rawHeaders: readonly string[]) => void;
  /** Called with the number of open streams when there is none any more, or the first. */
  readonly onOpenStreams: (socket: Socket, count: number) => void;
  readonly onFault: (socket: Socket, error: NodeJS.ErrnoException) => void;
  readonly onClose: (socket: Socket) => void;
}

interface Session extends Connection {
  /** No stream is open. */
  readonly isIdle: () => boolean;
  /** No request has arrived yet. */
  readonly isSilent: () => boolean;
  /** Resets streams whose client has read nothing since then, though there is something to read. */
  readonly resetStalled: (sinceMs: number) => void;
}

function openSession(socket: Socket, enableConnectProtocol: boolean, events: SessionEvents): Session {
  const settings = { ...sessionOptions.settings, enableConnectProtocol };
  const session: ServerHttp2Session = loadHttp2().performServerHandshake(socket, { ...sessionOptions, settings });
  const peer = peerOf(socket);
  // Servers of HTTP/1.1 let a client end its half. Here, it has left.
  socket.allowHalfOpen = false;
  destroyAfterEnd(socket);
  const streams = new Map<StreamSocket, Progress>();
  let isSilent = true;
  let idleSinceMs = performance.now();

  function onStreamClose(this: StreamSocket): void {
    streams.delete(this);
    if (streams.size > 0) return;
    idleSinceMs = performance.now();
    events.onOpenStreams(socket, 0);
  }

  session.on('stream', (opened, _headers, _flags, rawHeaders) => {
    const stream = Object.assign(opened, peer) as StreamSocket;
    isSilent = false;
    streams.set(stream, { waiting: 0, sinceMs: 0 });
    if (streams.size === 1) events.onOpenStreams(socket, 1);
    stream.on('close', onStreamClose);
    events.onStream(stream, rawHeaders);
  });
  session.on('error', (error) => events.onFault(socket, error));
  session.once('close', () => events.onClose(socket));
  return {
    socket,
    requestCount: () => [...streams.keys()].filter(({ isTunnel = false }) => !isTunnel).length,
    isIdle: () => streams.size === 0,
    idleSinceMs: () => idleSinceMs,
    isSilent: () => isSilent,
    end: () => session.close(),
    resetStalled(sinceMs) {
      for (const [stream, progress] of streams)
        if (!stream.isTunnel && hasStalled(stream, progress, sinceMs)) giveUp(stream);
    },
  };
}

export function peerOf(socket: Socket & Partial<Pick<TLSSocket, 'encrypted' | 'getProtocol'>>): StreamPeer {
  const { remoteAddress, remotePort, remoteFamily, localAddress, localPort, encrypted = false } = socket;
  const protocol = socket.getProtocol?.() ?? null;
  const getProtocol = encrypted ? () => protocol : undefined;
  const peer = { remoteAddress, remotePort, remoteFamily, localAddress, localPort, encrypted, getProtocol };
  return { ...peer, ...subjectFieldOf(socket) };
}

interface Progress {
  /** The bytes that waited for the client when it was last looked at. */
  waiting: number;
  /** Since when there have been as many. */
  sinceMs: number;
}

function hasStalled(stream: ServerHttp2Stream, progress: Progress, sinceMs: number): boolean {
  const waiting = stream.bufferSize;
  if (waiting !== progress.waiting) Object.assign(progress, { waiting, sinceMs: performance.now() });
  return waiting > 0 && progress.sinceMs <= sinceMs;
}

function giveUp(stream: StreamSocket): void {
  if (stream._httpMessage) giveUpClient(stream._httpMessage);
  stream.close(cancel);
}

/** NGHTTP2_CANCEL. */
const cancel = 8;

/** How long a client may take to close its side after ours. */
const closingMs = 1000;

/** After the last stream, Node only ends the socket, which a client that never ends its side would keep open. */
function destroyAfterEnd(socket: Socket): void {
  socket.once('finish', () => {
    const deadline = setTimeout(() => socket.destroy(), closingMs);
    socket.once('close', () => clearTimeout(deadline));
  });
}
