/** The HTTP/2 connections of a server: serves their streams, and closes what is silent, idle or stalled. */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { ServerHttp2Session, ServerOptions } from 'node:http2';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { TLSSocket } from 'node:tls';
import type { Logger } from '#foundation';
import { grpcTypeOf } from '../../grpc/content-type.ts';
import { http2Codes } from '../../http2-codes.ts';
import { giveUpClient, replaceStatus } from '../../log/final-status.ts';
import { type Problem, problem } from '../../problem.ts';
import { subjectFieldOf } from '../client-certificates.ts';
import { requestLine } from '../client-errors.ts';
import type { Connection } from '../connections.ts';
import { endStreamWithProblem } from '../last-response.ts';
import { continueOnRead, limitBodyTime } from '../node-fixes.ts';
import { loadHttp2 } from '../node-http.ts';
import { createThrottledLog } from '../throttled-log.ts';
import type { Upgrades } from '../upgrades.ts';
import { serveConnect } from './connect.ts';
import { readHead } from './head.ts';
import { Http2Request, Http2Response, type RequestHead, type StreamPeer, type StreamSocket } from './messages.ts';
import { watchMisuse } from './misuse.ts';

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
/**
 * A browser may have 180 cookies of a site, each in a line of its own. Each line may be a reference of one byte to 4 KiB
 * in the table of HPACK, which counts as memory that V8 has to collect.
 */
const headerPairsMax = 256;
/** The most that nghttp2 accepts. What exceeds the setting, but not this, gets a response. */
const headerListBytesMax = 65_535;

/**
 * How much of a body, and of all bodies of a connection, a client may send before it is read. The default of 64 KiB
 * for both would slow an upload down to 3 MB/s at 20 ms away.
 */
const streamWindowBytes = 262_144;
const connectionWindowBytes = 1_048_576;
/**
 * Beyond it, Node resets new streams. It counts what waits to be sent too, so its default of 10 MB would fail requests
 * of a slow client that asks for a few large responses.
 */
const sessionMegabytesMax = 1_000;

const sessionOptions: ServerOptions = {
  settings: {
    maxConcurrentStreams: streamsMax,
    maxHeaderListSize: headerListBytesMax,
    initialWindowSize: streamWindowBytes,
  },
  maxSessionMemory: sessionMegabytesMax,
  maxHeaderListPairs: headerPairsMax,
  // A header that occurs several times is sent as it is, as over HTTP/1.1.
  strictSingleValueFields: false,
};

export function createHttp2Connections(options: Http2Options): Http2Connections {
  const { headerTimeoutMs, keepAliveTimeoutMs, responseIdleTimeoutMs, setIdle, upgrades, logger } = options;
  const enableConnectProtocol = upgrades !== undefined;
  const connections = new Map<Socket, Session>();
  const log = logger && createThrottledLog(logger, 'a client sent something that is not a valid HTTP request');
  const { refusesInGrpc = true } = options;
  const refusalTypeOf: typeof grpcTypeOf = (request) => (refusesInGrpc ? grpcTypeOf(request) : undefined);
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
    if (fault === undefined) serve(stream, head);
    else reject(stream, head, fault);
  }

  function serve(stream: StreamSocket, head: RequestHead): void {
    stream.bytesRead = head.bytes;
    const request = new Http2Request(stream, head);
    const response = new Http2Response(request);
    response.onWrongLength = onWrongLength;
    if (request.headers.expect?.toLowerCase() === '100-continue') continueOnRead(request, response);
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
    const headers = { 'content-type': rawHeaders[rawHeaders.indexOf('content-type') + 1] };
    endStreamWithProblem(stream, fault, refusalTypeOf({ method, headers }));
  }

  /** The client gets 408 unless the response has begun. */
  function onLateBody(request: IncomingMessage, response: ServerResponse): void {
    const late = problem('request-timeout');
    if (response.headersSent) {
      response.destroy();
      return;
    }
    replaceStatus(response, late.status);
    endStreamWithProblem(request.socket as unknown as StreamSocket, late, refusalTypeOf(request));
  }

  function closeUnused(): void {
    const nowMs = performance.now();
    for (const session of connections.values()) {
      const isOver = nowMs - session.idleSinceMs() >= (session.isSilent() ? headerTimeoutMs : keepAliveTimeoutMs);
      if (session.isIdle() && isOver) session.end();
      if (responseIdleTimeoutMs > 0) session.resetStalled(nowMs - responseIdleTimeoutMs);
      session.dropReset();
      session.endMisuse();
      session.finish(nowMs);
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
  /** Called with the number of open streams when the first has opened, and when the last has closed. */
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
  /** Ends streams that the client has reset with NO_ERROR. Node would keep them until their response is sent, which is never. */
  readonly dropReset: () => void;
  /** Closes the connection if the client sends too much besides requests. */
  readonly endMisuse: () => void;
  /** Destroys the connection if it has ended, but its client keeps it open. */
  readonly finish: (nowMs: number) => void;
}

function openSession(socket: Socket, enableConnectProtocol: boolean, events: SessionEvents): Session {
  const settings = { ...sessionOptions.settings, enableConnectProtocol };
  const session: ServerHttp2Session = loadHttp2().performServerHandshake(socket, { ...sessionOptions, settings });
  session.setLocalWindowSize(connectionWindowBytes);
  const peer = streamPeerOf(socket);
  // Servers of HTTP/1.1 let a client end its half. Here, it has left.
  socket.allowHalfOpen = false;
  const misuse = watchMisuse(socket, { streamsMax, windowBytes: streamWindowBytes }, (reason) => {
    hasMisused = true;
    session.destroy(Object.assign(new Error(reason), { code: 'ENHANCE_YOUR_CALM' }), http2Codes.ENHANCE_YOUR_CALM);
  });
  /** Those that the client has reset are open until their handlers know. */
  const streams = new Map<StreamSocket, Progress>();
  let isSilent = true;
  /** A request has lost its response with the connection. */
  let hasLostResponse = false;
  /** What had been read when the last stream closed. */
  let readBytes = 0;
  let hasMisused = false;
  let idleSinceMs = performance.now();
  let endedMs: number | undefined;

  /** A client of grpc-go leaves with a GOAWAY that names its own last request, which nghttp2 rejects. This is no fault. */
  function isFarewell({ errno }: NodeJS.ErrnoException): boolean {
    const isShort = socket.bytesRead - readBytes < farewellBytesMax;
    return errno === protocolErrno && !isSilent && !hasLostResponse && isShort;
  }

  function onStreamClose(this: StreamSocket): void {
    streams.delete(this);
    readBytes = socket.bytesRead;
    hasLostResponse ||= session.destroyed && !this.writableEnded;
    misuse.onStreamClose(this);
    if (streams.size > 0) return;
    idleSinceMs = performance.now();
    events.onOpenStreams(socket, 0);
  }

  session.on('stream', (opened, _headers, _flags, rawHeaders) => {
    isSilent = false;
    const stream: StreamSocket = Object.assign(opened, peer, { bytesRead: 0, bytesWritten: 0 });
    streams.set(stream, { left: 0, sinceMs: 0 });
    if (streams.size === 1) events.onOpenStreams(socket, 1);
    stream.on('error', ignore).on('close', onStreamClose);
    misuse.onStreamOpen(streams.size);
    // Frames that arrive together may all be read before the first of their requests is announced.
    if (!hasMisused) events.onStream(stream, rawHeaders);
  });
  session.on('error', (error: NodeJS.ErrnoException) => {
    if (!isFarewell(error)) events.onFault(socket, error);
  });
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
    dropReset() {
      for (const stream of streams.keys()) if (isForgotten(stream)) giveUp(stream);
    },
    endMisuse: () => misuse.onSweep(streams.keys()),
    finish(nowMs) {
      if (!session.destroyed && (!session.closed || streams.size > 0)) return;
      endedMs ??= nowMs;
      if (nowMs - endedMs >= closingMs) socket.destroy();
    },
  };
}

export function streamPeerOf(socket: Socket & Partial<Pick<TLSSocket, 'encrypted' | 'getProtocol'>>): StreamPeer {
  const { remoteAddress, remotePort, remoteFamily, localAddress, localPort, encrypted = false } = socket;
  const protocol = socket.getProtocol?.() ?? null;
  const getProtocol = encrypted ? () => protocol : undefined;
  const peer = { remoteAddress, remotePort, remoteFamily, localAddress, localPort, encrypted, getProtocol };
  return { ...peer, ...subjectFieldOf(socket) };
}

interface Progress {
  /** What the client had not taken when the stream was last looked at: bytes, and the end of the response. */
  left: number;
  /** Since when it has been as much. */
  sinceMs: number;
}

function hasStalled(stream: StreamSocket, progress: Progress, sinceMs: number): boolean {
  const left = stream.bufferSize + (hasEnded(stream) ? 1 : 0);
  if (left !== progress.left) Object.assign(progress, { left, sinceMs: performance.now() });
  return left > 0 && progress.sinceMs <= sinceMs;
}

/** Node ends the stream of a HEAD request before there is a response. */
function hasEnded({ writableEnded, _httpMessage: response }: StreamSocket): boolean {
  return writableEnded && response?.writableEnded !== false;
}

/** Does not wait until the reset is sent: the client may read nothing at all. */
function giveUp(stream: StreamSocket): void {
  if (stream._httpMessage) giveUpClient(stream._httpMessage);
  stream.close(http2Codes.CANCEL);
  stream.destroy();
}

function isForgotten(stream: StreamSocket): boolean {
  return stream.closed && !stream.writableFinished && stream.state.state === idle;
}

/** NGHTTP2_STREAM_STATE_IDLE, which nghttp2 also says of a stream that it has forgotten. */
const idle = 1;

/** How long a client may take to close its side after ours, and to read what is still on its way. */
const closingMs = 1000;

/** The error of nghttp2 for a frame that is not allowed (NGHTTP2_ERR_PROTO). */
const protocolErrno = -505;
/** What a client may say when it leaves: a GOAWAY with a reason. */
const farewellBytesMax = 1024;
