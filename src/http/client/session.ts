/** An HTTP/2 session to a server: ready when the server has sent its settings, and watched until it closes. */
import type { ClientHttp2Session, Settings } from 'node:http2';
import type { Socket } from 'node:net';
import { http2CodeName, http2Codes } from '../http2-codes.ts';
import { loadHttp2, nodeHttp } from '../server/node-http.ts';
import type { OpenConnection } from './connect.ts';
import { Http2Error } from './errors.ts';
import { Exchange, type ExchangeSession, type RequestBody, type SessionRequest } from './exchange.ts';
import { watchSession } from './watch.ts';

export interface Session extends ExchangeSession {
  /** The number of open streams. */
  readonly streamCount: () => number;
  /** False once it is closing. Closes it when its lifetime is over. */
  readonly takesRequests: () => boolean;
  /** True if the server allows another stream. */
  readonly hasRoom: () => boolean;
  /** True once a response has arrived, so that the server may have closed the session as idle. */
  readonly isProven: () => boolean;
  /** When it became ready, on the clock. */
  readonly readyAtMs: () => number;
  /** Sends the head. Call it only if the session takes requests and has room. Throws if the head cannot be sent. */
  readonly request: (head: string[], request: SessionRequest, body: RequestBody) => Exchange;
  /** Takes no more requests, and closes after those that it has. */
  readonly close: () => void;
  /** Aborts its requests. */
  readonly destroy: (cause: Error) => void;
}

export interface SessionOptions {
  readonly origin: string;
  readonly connectTimeoutMs: number;
  readonly idleConnectionMs?: number | undefined;
  /** 0 or undefined for no limit. */
  readonly connectionLifetimeMs?: number | undefined;
}

export interface SessionParts {
  /** Returns the time in milliseconds. */
  readonly clock: () => number;
  /** Returns a number from 0 up to, but not including, 1. */
  readonly random: () => number;
  /** Calls `run` once after `delayMs`. Returns a function that cancels it. */
  readonly timer: (run: () => void, delayMs: number) => () => void;
  /** The largest headers of a response, in bytes. Undefined for Node's limit, usually 16 KiB. */
  readonly headerBytesMax: number | undefined;
  /** Called when the server announces that it ends a session. */
  readonly onGoaway?: (() => void) | undefined;
}

export interface SessionEvents {
  readonly onReady: (session: Session) => void;
  /** Called when a request has ended or the server allows more of them. */
  readonly onRoom: (session: Session) => void;
  /** Called once. `cause` is undefined if it has closed in an orderly way. */
  readonly onClosed: (session: Session, cause: Error | undefined) => void;
}

/** Concurrent requests of a session. Another is opened for more. */
export const streamsOfSessionMax = 100;

/** Longer than over HTTP/1.1: a server that closes an idle session says which requests it has not processed. */
const idleMsDefault = 60_000;

/** What a server may send on a stream that is not read, and on all streams of a session in a round trip. */
const streamWindowBytes = 256 * 1024;
const sessionWindowBytes = 4 * 1024 * 1024;

/** A request that waited this long in vain makes its session suspect. */
const suspectMs = 1_000;

/** Calls `connect` at once. */
export function openSession(
  connect: OpenConnection,
  options: SessionOptions,
  { clock, random, timer, headerBytesMax = nodeHttp.maxHeaderSize, onGoaway }: SessionParts,
  events: SessionEvents,
): Session {
  const idleMs = options.idleConnectionMs ?? idleMsDefault;
  const exchanges = new Set<Exchange>();
  let http2: ClientHttp2Session | undefined;
  let socket: Socket | undefined;
  let streamsMax = 0;
  let activity = 0;
  let lastStreamId = Number.POSITIVE_INFINITY;
  let failure: Error | undefined;
  let readyAtMs = 0;
  let expiresAtMs = Number.POSITIVE_INFINITY;
  let idleSinceMs = 0;
  let isClosing = false;
  let isClosed = false;
  let isReady = false;

  const giveUp = connect((cause, connected) => {
    if (cause !== undefined) onEnded(cause);
    else if (!isClosed) start(connected);
  });
  let stopTimer = timer(() => {
    const message = `no session within ${options.connectTimeoutMs} ms`;
    destroy(new Http2Error('HTTP2_CONNECT_TIMEOUT', message));
  }, options.connectTimeoutMs);

  function start(connected: Socket): void {
    socket = connected;
    http2 = openHttp2(options.origin, connected, headerBytesMax);
    http2.on('remoteSettings', onSettings);
    http2.on('goaway', onGoawayFrame);
    http2.on('error', (cause) => {
      failure ??= isReady ? brokenBy(cause) : unsupported(cause);
    });
    http2.once('close', () => onEnded(failure ?? (isReady ? undefined : unsupported())));
    // The server has ended the connection. Node is about to drop what it has received and that has not been read.
    connected.once('end', () => {
      for (const exchange of exchanges) exchange.drain();
    });
  }

  function onSettings({ maxConcurrentStreams = streamsOfSessionMax }: Settings): void {
    streamsMax = Math.min(streamsOfSessionMax, maxConcurrentStreams);
    if (!isReady) onReady();
    else events.onRoom(session);
  }

  function onReady(): void {
    stopTimer();
    isReady = true;
    readyAtMs = clock();
    idleSinceMs = readyAtMs;
    // Varies by a tenth, so that sessions that opened together are not replaced together.
    expiresAtMs = readyAtMs + (options.connectionLifetimeMs || Number.POSITIVE_INFINITY) * (1 - random() / 10);
    stopTimer = watch();
    events.onReady(session);
  }

  /** Node closes the session: at once after an error, and otherwise after its streams. */
  function onGoawayFrame(code: number, lastId: number): void {
    lastStreamId = Math.min(lastStreamId, lastId);
    if (code !== http2Codes.NO_ERROR)
      failure ??= new Http2Error('HTTP2_RESET', `the service ended the session (${http2CodeName(code)})`, {
        resetCode: code,
      });
    onGoaway?.();
  }

  function onEnded(cause: Error | undefined): void {
    if (isClosed) return;
    isClosed = true;
    failure ??= cause;
    stopTimer();
    events.onClosed(session, cause);
  }

  function watch(): () => void {
    const connection = { http2: http2 as ClientHttp2Session, socket: socket as Socket };
    const isBusy = () => exchanges.size > 0;
    return watchSession({
      ...connection,
      idleMs,
      clock,
      timer,
      isBusy,
      idleSinceMs: () => idleSinceMs,
      close,
      destroy,
    });
  }

  function destroy(cause: Error): void {
    if (isClosed) return;
    failure ??= cause;
    if (http2 === undefined) giveUp(cause);
    else {
      http2.destroy(cause);
      // Otherwise Node would wait until a peer that may be gone has received everything.
      socket?.destroy();
    }
  }

  function close(): void {
    isClosing = true;
    if (http2 === undefined || !isReady) destroy(new Http2Error('HTTP2_DESTROYED', 'the session is closed'));
    else http2.close();
  }

  function ofSession(): Session {
    return {
      headerBytesMax,
      get lastStreamId() {
        return lastStreamId;
      },
      get failure() {
        return failure;
      },
      hasEnded: () => http2?.destroyed !== false,
      onActivity() {
        activity += 1;
      },
      onAborted(exchange, reason) {
        const isSuspect = activity === exchange.activityBefore && clock() - exchange.sentAtMs >= suspectMs;
        if (isSuspect && Reflect.get(reason, 'code') === 'ETIMEDOUT') isClosing = true;
      },
      onClosed(exchange) {
        exchanges.delete(exchange);
        if (exchanges.size === 0) {
          idleSinceMs = clock();
          if (isClosing) close();
        }
        events.onRoom(session);
      },
      streamCount: () => exchanges.size,
      takesRequests() {
        if (clock() >= expiresAtMs) close();
        return !isClosing && http2?.closed === false && !http2.destroyed;
      },
      hasRoom: () => exchanges.size < streamsMax,
      isProven: () => activity > 0,
      readyAtMs: () => readyAtMs,
      request(head, request, body) {
        const stream = (http2 as ClientHttp2Session).request(head, body === null ? withoutBody : withBody);
        const exchange = new Exchange(session, stream, request, activity, clock());
        exchanges.add(exchange);
        return exchange;
      },
      close,
      destroy,
    };
  }

  const session = ofSession();
  return session;
}

const withBody = Object.freeze({ endStream: false });
const withoutBody = Object.freeze({ endStream: true });

/** A session neither keeps the process alive nor accepts pushes. */
function openHttp2(origin: string, socket: Socket, headerBytesMax: number): ClientHttp2Session {
  const options = {
    // After a GOAWAY, Node only ends the socket, which a server that never ends its side would keep open forever.
    createConnection: () => socket.once('finish', () => socket.destroy()),
    settings: { enablePush: false, initialWindowSize: streamWindowBytes, maxHeaderListSize: headerBytesMax },
    // Each counts as its length and 32 bytes (RFC 9113 section 6.5.2).
    maxHeaderListPairs: Math.ceil(headerBytesMax / 32),
    // The headers were bounded when they were received. Node's limit would end the session.
    maxSendHeaderBlockLength: 1024 * 1024,
    maxReservedRemoteStreams: 0,
    // Node would reject some headers that occur twice, which HTTP/1.1 forwards.
    strictSingleValueFields: false,
  };
  const http2 = loadHttp2().connect(origin, options);
  http2.setLocalWindowSize(sessionWindowBytes);
  http2.unref();
  return http2;
}

function unsupported(cause?: Error): Error {
  const { code = '' } = (cause ?? {}) as { code?: string };
  if (cause !== undefined && !code.startsWith('ERR_HTTP2_')) return cause;
  return new Http2Error('HTTP2_UNSUPPORTED', 'the server does not speak HTTP/2 on this port', { cause });
}

function brokenBy(cause: Error & { code?: string }): Error {
  return cause.code === 'ERR_HTTP2_ERROR'
    ? new Http2Error('HTTP2_PROTOCOL', `the service violates HTTP/2 (${cause.message})`, { cause })
    : cause;
}
