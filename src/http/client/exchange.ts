/** A request over HTTP/2 and its response, on one stream of a session. Reports what happens like undici does. */
import type { ClientHttp2Stream, IncomingHttpHeaders, IncomingHttpStatusHeader } from 'node:http2';
import { Readable } from 'node:stream';
import type { Dispatcher } from 'undici';
import { http2CodeName, http2Codes } from '../http2-codes.ts';
import { Http2Error } from './errors.ts';

/** A request: waiting for a session or in flight. */
export interface SessionRequest {
  readonly options: Dispatcher.DispatchOptions;
  readonly handler: Dispatcher.DispatchHandler;
  /** True if the request needs a session that was opened later than the request. */
  readonly isFresh: boolean;
  /** Equal numbers of sockets mean that the server may have closed the session as idle before it saw the request. */
  connection: { readonly socketsOpened: number } | undefined;
  openSocket: number;
}

export type RequestBody = NonNullable<Dispatcher.DispatchOptions['body']> | null;

/** The session of an exchange. */
export interface ExchangeSession {
  /** The last stream that the server processes, from its GOAWAY. */
  readonly lastStreamId: number;
  /** The largest header list, in bytes, and 32 for each header (RFC 9113 section 6.5.2). */
  readonly headerBytesMax: number;
  /** Why the session has ended, as far as it is known. */
  readonly failure: Error | undefined;
  /** True once the connection has ended or is about to. */
  readonly hasEnded: () => boolean;
  /** Called for whatever the server sends on a stream. */
  readonly onActivity: () => void;
  /** Called once, when the stream has closed. */
  readonly onClosed: (exchange: Exchange) => void;
  /** Called when the request is given up. */
  readonly onAborted: (exchange: Exchange, reason: Error) => void;
}

const exchangeKey = Symbol('exchange');
/** The exchange is a property of its stream, because listeners that close over it would be created for each request. */
type ExchangeStream = ClientHttp2Stream & { [exchangeKey]?: Exchange };

/** Sent on its own and not after a body, which is how gRPC reports errors. */
const endStreamFlag = 0x1;

/** A class, because each request has one. Implements undici's controller of a response. */
export class Exchange implements Dispatcher.DispatchController {
  reason: Error | null = null;
  aborted = false;
  paused = false;
  /** Alternating names and values, each character of which is one byte. */
  rawHeaders: string[] = [];
  rawTrailers: string[] = [];
  /** True if the header block of the response has ended it, so that there is neither a body nor trailers. */
  endsWithHead = false;
  /** The session's count of activity when the request was sent. */
  readonly activityBefore: number;
  readonly sentAtMs: number;
  private readonly session: ExchangeSession;
  private readonly stream: ExchangeStream;
  private readonly request: SessionRequest;
  private readonly handler: Dispatcher.DispatchHandler;
  private upload: Readable | undefined = undefined;
  private hasHead = false;
  private hasEndedOrderly = false;
  private isOver = false;
  private isDraining = false;
  private failure: Error | undefined = undefined;

  constructor(
    session: ExchangeSession,
    stream: ClientHttp2Stream,
    request: SessionRequest,
    activity: number,
    nowMs: number,
  ) {
    this.session = session;
    this.stream = stream;
    this.request = request;
    this.handler = request.handler;
    this.activityBefore = activity;
    this.sentAtMs = nowMs;
    this.stream[exchangeKey] = this;
    stream.push = pushAndNoteEnd;
    stream.on('response', onResponse).on('headers', onInterim).on('trailers', onTrailers);
    stream.on('end', onEnd).on('error', onError).on('close', onClose);
  }

  /** Sends the body. The head is on its way. */
  send(body: RequestBody, declaredBytes: number | undefined): void {
    this.handler.onRequestStart?.(this, undefined);
    if (this.isOver || body === null) return;
    if (!(body instanceof Readable)) this.stream.end(body as Uint8Array | string);
    else {
      this.upload = body;
      pump(body, this.stream, declaredBytes, (cause) => this.abort(cause));
    }
  }

  abort(reason: Error): void {
    if (this.isOver) return;
    this.aborted = true;
    this.reason = reason;
    this.session.onAborted(this, reason);
    this.leave();
    this.fail(reason);
    // A paused stream with data that was not read would never close.
    this.drain();
  }

  pause(): void {
    if (this.isDraining) return;
    this.paused = true;
    this.stream.pause();
  }

  resume(): void {
    this.paused = false;
    this.stream.resume();
  }

  /** Delivers what has arrived, even to a paused handler, because the session is about to end. */
  drain(): void {
    this.isDraining = true;
    if (this.hasHead || this.isOver) this.resume();
  }

  onInterim(status: number, rawHeaders: string[], headers: IncomingHttpHeaders): void {
    if (!this.accepts(rawHeaders)) return;
    this.rawHeaders = rawHeaders;
    this.handler.onResponseStarted?.();
    this.handler.onResponseStart?.(this, status, headers);
  }

  onHead(status: number, rawHeaders: string[], headers: IncomingHttpHeaders, flags: number): void {
    if (!this.accepts(rawHeaders)) return;
    this.hasHead = true;
    this.rawHeaders = rawHeaders;
    this.endsWithHead = (flags & endStreamFlag) !== 0;
    this.hasEndedOrderly ||= this.endsWithHead;
    // Not earlier: Node may emit the head after the data, and even the end, that arrived with it.
    this.stream.on('data', onData);
    this.handler.onResponseStarted?.();
    this.handler.onResponseStart?.(this, status, headers);
  }

  onData(chunk: Buffer): void {
    if (this.isOver) return;
    this.session.onActivity();
    this.handler.onResponseData?.(this, chunk);
  }

  onTrailers(rawTrailers: string[]): void {
    if (this.accepts(rawTrailers)) this.rawTrailers = rawTrailers;
  }

  /** Node announces the limit to the server, but does not enforce it. */
  private accepts(list: readonly string[]): boolean {
    if (this.isOver) return false;
    this.session.onActivity();
    if (sizeOf(list) <= this.session.headerBytesMax) return true;
    this.abort(headersTooLarge());
    return false;
  }

  /** Node also ends a stream that the server resets with NO_ERROR in the middle of the body. */
  noteEnd(): void {
    if (!this.stream.closed) this.hasEndedOrderly = true;
  }

  onEnd(): void {
    if (this.isOver) return;
    if (!this.hasEndedOrderly) {
      const resetCode = this.stream.rstCode ?? http2Codes.NO_ERROR;
      if (this.hasHead) this.fail(new Http2Error('HTTP2_RESET', 'the service broke the response off', { resetCode }));
      if (this.stream.closed) this.leave();
      return;
    }
    this.isOver = true;
    this.stopUpload();
    this.handler.onResponseEnd?.(this, {});
  }

  onError(cause: Error): void {
    this.failure = cause;
  }

  onClose(): void {
    this.fail(this.causeOfClose());
    this.session.onClosed(this);
  }

  /** A response that is complete needs no more of the request (RFC 9113 section 8.1). */
  private stopUpload(): void {
    const { stream, upload } = this;
    const isSent = stream.writableEnded && stream.writableLength === 0;
    if (!isSent) this.leave();
    if (upload?.destroyed === false && !upload.readableEnded) upload.destroy();
  }

  /** Node would keep a stream that the server has reset with NO_ERROR until its body is sent, which is never. */
  private leave(): void {
    if (this.stream.closed) this.stream.destroy();
    else this.stream.close(http2Codes.CANCEL);
  }

  private fail(cause: Error): void {
    if (this.isOver) return;
    this.isOver = true;
    if (this.upload?.destroyed === false) this.upload.destroy();
    this.handler.onResponseError?.(this, cause);
  }

  private causeOfClose(): Error {
    const { session, stream, failure } = this;
    const { rstCode = 0, id = 0 } = stream;
    if (!this.hasHead && (id === 0 || id > session.lastStreamId)) return refused('the session ended before it');
    if (session.hasEnded()) return session.failure ?? connectionEnded(failure);
    // The session goes on, so the server has not closed it as idle.
    this.request.openSocket = 0;
    if (rstCode === http2Codes.REFUSED_STREAM && !this.hasHead) return refused('the service refused it');
    if (rstCode === http2Codes.ENHANCE_YOUR_CALM && !this.hasHead) return headersTooLarge();
    const message = `the service reset the request (${http2CodeName(rstCode)})`;
    return new Http2Error('HTTP2_RESET', message, { cause: failure, resetCode: rstCode });
  }
}

function refused(why: string): Http2Error {
  return new Http2Error('HTTP2_REFUSED', `the request was not processed: ${why}`, {
    resetCode: http2Codes.REFUSED_STREAM,
  });
}

function connectionEnded(cause: Error | undefined): Error {
  return new Http2Error('ECONNRESET', 'the service closed the connection', { cause });
}

function sizeOf(list: readonly string[]): number {
  let bytes = list.length * 16;
  for (const text of list) bytes += text.length;
  return bytes;
}

/** Node itself resets a stream with this code if there are too many headers. */
function headersTooLarge(): Http2Error {
  return new Http2Error('HTTP2_HEADERS_OVERFLOW', 'the headers of the response are too large (ENHANCE_YOUR_CALM)');
}

function onResponse(
  this: ExchangeStream,
  headers: IncomingHttpHeaders & IncomingHttpStatusHeader,
  flags: number,
  rawHeaders: string[],
): void {
  this[exchangeKey]?.onHead(headers[':status'] ?? 0, withoutStatus(rawHeaders), headers, flags);
}

function onInterim(
  this: ExchangeStream,
  headers: IncomingHttpHeaders & IncomingHttpStatusHeader,
  _flags: number,
  rawHeaders: string[],
): void {
  this[exchangeKey]?.onInterim(headers[':status'] ?? 0, withoutStatus(rawHeaders), headers);
}

/** The only pseudo-header of a response, which comes first (RFC 9113 section 8.3). */
function withoutStatus(rawHeaders: string[]): string[] {
  return rawHeaders[0] === ':status' ? rawHeaders.slice(2) : rawHeaders;
}

function onTrailers(this: ExchangeStream, _headers: unknown, _flags: number, rawTrailers: string[]): void {
  this[exchangeKey]?.onTrailers(rawTrailers);
}

function onData(this: ExchangeStream, chunk: Buffer): void {
  this[exchangeKey]?.onData(chunk);
}

function onEnd(this: ExchangeStream): void {
  this[exchangeKey]?.onEnd();
}

/** A listener is necessary even after the exchange: otherwise the error would crash the process. */
function onError(this: ExchangeStream, cause: Error): void {
  this[exchangeKey]?.onError(cause);
}

/** V8 keeps a closed stream until it collects the whole heap, so the stream must not keep the request. */
function onClose(this: ExchangeStream): void {
  const exchange = this[exchangeKey];
  delete this[exchangeKey];
  exchange?.onClose();
}

/** Overrides the `push` of one stream. The end of a stream is pushed before the stream closes, unless it was reset. */
function pushAndNoteEnd(this: Readable, chunk: unknown, encoding?: BufferEncoding): boolean {
  if (chunk === null) (this as ExchangeStream)[exchangeKey]?.noteEnd();
  return Readable.prototype.push.call(this, chunk, encoding);
}

/** Copies the body into the stream as fast as the server reads it. */
function pump(
  body: Readable,
  stream: ClientHttp2Stream,
  declaredBytes: number | undefined,
  abort: (cause: Error) => void,
): void {
  let bytes = 0;
  const isWrong = () => declaredBytes !== undefined && bytes !== declaredBytes;
  body.on('data', (chunk: Uint8Array) => {
    bytes += chunk.length;
    if (declaredBytes !== undefined && bytes > declaredBytes) abort(wrongLength());
    else if (stream.writable && !stream.write(chunk)) body.pause();
  });
  body.on('end', () => {
    if (isWrong()) abort(wrongLength());
    else if (stream.writable) stream.end();
  });
  body.on('error', abort);
  body.on('close', () => {
    if (!body.readableEnded) abort(new Http2Error('ECONNRESET', 'the body of the request was cut off'));
  });
  stream.on('drain', () => body.resume());
}

export function wrongLength(): Http2Error {
  return new Http2Error('HTTP2_BODY_LENGTH', 'the body of the request does not have the length of its Content-Length');
}
