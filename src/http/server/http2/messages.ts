/** Requests and responses of HTTP/2, as the classes of node:http, so that they are handled like those of HTTP/1.1. */
import type { IncomingMessage, OutgoingHttpHeader, OutgoingHttpHeaders, ServerResponse } from 'node:http';
import type { ServerHttp2Stream, ServerStreamResponseOptions } from 'node:http2';
import type { Socket } from 'node:net';
import { http2Codes } from '../../http2-codes.ts';
import { nodeHttp } from '../node-http.ts';
import { connectionHeaders } from '../received-headers.ts';

/**
 * A stream that also stands in for the connection of its messages: `req.socket` and `res.socket`. Destroying it ends one
 * request, not the others of the connection.
 */
export type StreamSocket = ServerHttp2Stream & StreamPeer & Counted & { _httpMessage?: Http2Response | null };

/** What code that looks at the connection of a request wants to know. */
export interface StreamPeer {
  readonly remoteAddress: string | undefined;
  readonly remotePort: number | undefined;
  readonly remoteFamily: string | undefined;
  readonly localAddress: string | undefined;
  readonly localPort: number | undefined;
  readonly encrypted: boolean;
  readonly getProtocol: (() => string | null) | undefined;
}

interface Counted {
  /** The bytes of the head, as HTTP/1.1 would have sent it, and of the body so far. */
  bytesRead: number;
  bytesWritten: number;
  /** The stream has switched to another protocol. */
  isTunnel?: boolean;
}

/** The head of a request, without pseudo-headers. */
export interface RequestHead {
  readonly method: string;
  readonly target: string;
  /** Alternating names and values. The host comes first, if there is one, and all cookies are one value. */
  readonly rawHeaders: readonly string[];
  /** The size that the head would have in HTTP/1.1. */
  readonly bytes: number;
  /** The protocol of an extended CONNECT (RFC 8441), in lower case: `websocket`. */
  readonly connectProtocol?: string | undefined;
}

interface WithHeaderLines {
  _addHeaderLines(headers: readonly string[], count: number): void;
  _dump(): void;
}

/** Reads the body from the stream only when it is read itself. */
export class Http2Request extends nodeHttp.IncomingMessage {
  readonly stream: StreamSocket;
  /** A body may have no length: without one, it ends with the stream. */
  readonly announcesBody: boolean;
  /** The protocol that the client wants to switch to. Undefined for all but an extended CONNECT. */
  readonly connectProtocol: string | undefined;
  private isReading = false;
  private isCutShort = false;

  constructor(stream: StreamSocket, head: RequestHead) {
    // The stream has what is used of a socket.
    super(stream as unknown as Socket);
    this.stream = stream;
    this.httpVersion = '2.0';
    this.httpVersionMajor = 2;
    this.httpVersionMinor = 0;
    this.method = head.method;
    this.url = head.target;
    this.connectProtocol = head.connectProtocol;
    addLines(this, head.rawHeaders);
    // What follows an extended CONNECT belongs to the other protocol.
    const isBody = head.connectProtocol === undefined && this.headers['content-length'] !== '0';
    this.announcesBody = isBody && !stream.endAfterHeaders;
    // A body without bytes may end before it is read.
    if (this.announcesBody) stream.on('trailers', onTrailers).on('end', onEnd);
    else this.complete = true;
  }

  override _read(): void {
    if (this.isReading) {
      this.stream.resume();
      return;
    }
    this.isReading = true;
    if (!this.announcesBody) {
      this.push(null);
      return;
    }
    this.stream.on('data', onData);
  }

  /** Reads and drops a body that nothing has read. */
  dumpUnread(): void {
    if (!this.isReading) (this as unknown as WithHeaderLines)._dump();
  }

  /** Asks the client not to send the rest (RFC 9113 section 8.1). */
  cutShort(): void {
    this.isCutShort = true;
    this.stream.close(http2Codes.NO_ERROR);
  }

  /** False if the stream ends before its request does. */
  hasArrived(): boolean {
    return !this.isCutShort && this.stream.rstCode === http2Codes.NO_ERROR;
  }
}

function addLines(request: IncomingMessage, lines: readonly string[]): void {
  (request as IncomingMessage & WithHeaderLines)._addHeaderLines(lines, lines.length);
}

function requestOf(stream: StreamSocket): Http2Request | undefined {
  return stream._httpMessage?.req as Http2Request | undefined;
}

function onData(this: StreamSocket, chunk: Buffer): void {
  this.bytesRead += chunk.length;
  if (requestOf(this)?.push(chunk) === false) this.pause();
}

/** Also emitted when the stream is reset: `close` follows then. */
function onEnd(this: StreamSocket): void {
  const request = requestOf(this);
  if (request?.hasArrived() !== true) return;
  request.complete = true;
  request.push(null);
}

function onTrailers(this: StreamSocket, _trailers: unknown, _flags: number, rawTrailers: readonly string[]): void {
  const request = requestOf(this);
  if (request === undefined) return;
  // Nothing else follows. Node's class takes the lines for headers before.
  request.complete = true;
  addLines(request, rawTrailers);
}

/** The types of Node lack `sendDate`. */
interface SendingOptions extends ServerStreamResponseOptions {
  readonly sendDate: boolean;
}

type Callback = (error?: Error | null) => void;

/** The internals of Node's class that send the head and the body. */
interface Sender {
  _header: string | null;
  _headerSent: boolean;
  readonly _hasBody: boolean;
  /** Known if the body is complete when the head is built. */
  readonly _contentLength: number | null;
  readonly _removedContLen: boolean;
  chunkedEncoding: boolean;
  _finish(): void;
}

/**
 * Node's class keeps the headers and the state. Only what it writes differs: a head becomes one HEADERS frame, and the
 * body DATA frames. The last one ends the stream.
 */
export class Http2Response extends nodeHttp.ServerResponse<Http2Request> {
  /** The size that the head would have in HTTP/1.1. 0 before it is sent. */
  headBytes = 0;
  /** Whether trailers may follow the body. They are dropped otherwise. */
  expectsTrailers = false;
  /** Whether trailers end the stream, and not the body. */
  hasTrailers = false;
  /** Called before a response is cut off because its body has not the length that its head says. */
  onWrongLength: ((response: Http2Response, reason: string) => void) | undefined = undefined;
  private readonly stream: StreamSocket;
  private head: OutgoingHttpHeader[] | undefined = undefined;
  private trailers: OutgoingHttpHeaders | undefined = undefined;
  private bodyBytesLeft = Number.POSITIVE_INFINITY;
  private isEnding = false;

  constructor(request: Http2Request) {
    super(request);
    const { stream } = request;
    this.stream = stream;
    this.assignSocket(stream as unknown as Socket);
    stream.on('drain', onDrain).on('close', onClose).on('error', ignore).on('wantTrailers', onWantTrailers);
    this.on('finish', onFinish);
  }

  /** Node's class calls it with the headers when the head is complete. */
  _storeHeader(_firstLine: string, given: unknown): void {
    const sender = this as unknown as Sender;
    const head: OutgoingHttpHeader[] = [':status', this.statusToSend()];
    let bytes = statusLineBytes + this.addedBytes();
    for (const [name, value] of this.headersToSend(given)) {
      if (connectionHeaders.has(name)) continue;
      for (const one of Array.isArray(value) ? value : [value]) {
        head.push(name, one);
        bytes += name.length + String(one).length + lineBytes;
      }
      if (name === 'content-length') this.bodyBytesLeft = Number(value);
    }
    this.head = head;
    this.headBytes = bytes;
    sender._header = statusLine;
    sender._headerSent = false;
    sender.chunkedEncoding = false;
  }

  private headersToSend(given: unknown): readonly (readonly [string, OutgoingHttpHeader])[] {
    const pairs = this.headersOf(given);
    const { _contentLength: length, _hasBody, _removedContLen } = this as unknown as Sender;
    const addsLength = typeof length === 'number' && _hasBody && !_removedContLen;
    return addsLength && pairs.every(([name]) => name !== 'content-length')
      ? [...pairs, ['content-length', length]]
      : pairs;
  }

  /** A success is what 101 is in HTTP/1.1 (RFC 8441 section 5). */
  private statusToSend(): number {
    if (this.statusCode > statusMax) this.statusCode = 502;
    return this.hasSwitched() ? 200 : this.statusCode;
  }

  /** Those of the date, which is added when the head is sent. */
  private addedBytes(): number {
    return this.sendDate && !this.hasHeader('date') ? dateLineBytes : 0;
  }

  /** Headers that only `writeHead` got are not among those of the response. */
  private headersOf(given: unknown): readonly [string, OutgoingHttpHeader][] {
    const own = Object.entries(this.getHeaders()) as [string, OutgoingHttpHeader][];
    if (own.length > 0 || typeof given !== 'object' || given === null) return own;
    const pairs = Array.isArray(given) ? pairsOf(given.flat()) : Object.entries(given);
    return pairs.map(([name, value]) => [name.toLowerCase(), value]);
  }

  /** Node's class calls it for each part of the response, and with nothing to send the head alone. */
  _send(data: string | Uint8Array, encoding?: BufferEncoding | null, callback?: Callback | null): boolean {
    const { stream } = this;
    if (stream.destroyed || stream.closed) return false;
    if (this.head !== undefined) this.sendHead(this.head, data.length === 0);
    if (data.length === 0) {
      if (callback) queueMicrotask(callback);
      return true;
    }
    const bytes = typeof data === 'string' ? Buffer.byteLength(data, encoding ?? 'utf8') : data.length;
    this.bodyBytesLeft -= bytes;
    if (this.bodyBytesLeft < 0) {
      // The client would give up the whole connection.
      this.cutOff('the body is longer than its Content-Length');
      return false;
    }
    stream.bytesWritten += bytes;
    return stream.write(data, encoding ?? 'utf8', callback ?? undefined);
  }

  private sendHead(head: OutgoingHttpHeader[], isEmpty: boolean): void {
    const { stream, trailers } = this;
    this.head = undefined;
    (this as unknown as Sender)._headerSent = true;
    // Another response, such as a time-out, has been sent instead.
    if (stream.headersSent) return;
    const endStream = isEmpty && this.isEnding && trailers === undefined && !this.hasSwitched();
    stream.bytesWritten += this.headBytes;
    const waitForTrailers = !endStream && (trailers !== undefined || this.expectsTrailers);
    this.hasTrailers = waitForTrailers;
    const sending: SendingOptions = { endStream, waitForTrailers, sendDate: this.sendDate };
    this.sendOrReset(() => stream.respond(head as unknown as OutgoingHttpHeaders, sending));
  }

  /** The server of a host may reject a header that occurs twice. An error would end the process or leave the client waiting. */
  private sendOrReset(sendHeaders: () => void): void {
    try {
      sendHeaders();
    } catch (cause) {
      this.destroy(cause as Error);
    }
  }

  override end(...args: unknown[]): this {
    this.isEnding = true;
    return super.end(...(args as []));
  }

  /** Node's class calls it when all has been written. */
  _finish(): void {
    finishMessage.call(this as unknown as Sender);
    // What is written after the client has left is not counted.
    if (this.stream.destroyed || this.stream.closed) return;
    if (this.lacksBytes()) this.cutOff('the body is shorter than its Content-Length');
    else if (!this.hasSwitched()) this.stream.end();
  }

  /** The stream goes on after the response. */
  hasSwitched(): boolean {
    return this.statusCode === 101;
  }

  private lacksBytes(): boolean {
    const { _hasBody } = this as unknown as Sender;
    return _hasBody && this.bodyBytesLeft > 0 && Number.isFinite(this.bodyBytesLeft);
  }

  private cutOff(reason: string): void {
    this.onWrongLength?.(this, reason);
    this.destroy(new Error(reason));
  }

  override addTrailers(given: OutgoingHttpHeaders | readonly [string, string][]): void {
    this.trailers ??= {};
    const pairs = Array.isArray(given) ? given : Object.entries(given);
    for (const [name, value] of pairs) {
      const lowerName = String(name).toLowerCase();
      nodeHttp.validateHeaderName(lowerName);
      nodeHttp.validateHeaderValue(lowerName, value);
      const present = this.trailers[lowerName];
      this.trailers[lowerName] = present === undefined ? value : ([present, value].flat() as string[]);
    }
  }

  sendTrailers(): void {
    const { stream } = this;
    if (stream.destroyed || stream.closed) return;
    this.sendOrReset(() => stream.sendTrailers(this.trailers ?? {}));
    cutShortLater(this.req);
  }

  override writeContinue(callback?: () => void): void {
    this.sendInterim({ ':status': 100 });
    callback?.();
  }

  override writeEarlyHints(hints: Record<string, string | string[]>, callback?: () => void): void {
    this.sendInterim({ ...hints, ':status': 103 });
    callback?.();
  }

  override writeProcessing(callback?: () => void): void {
    this.sendInterim({ ':status': 102 });
    callback?.();
  }

  private sendInterim(headers: OutgoingHttpHeaders & { ':status': number }): void {
    const { stream } = this;
    if (!stream.destroyed && !stream.closed && !stream.headersSent) stream.additionalHeaders(headers);
  }

  /**
   * Resets the stream, so that its client cannot take a part of the response for the whole. `close` would end the response
   * before the reset.
   */
  override destroy(error?: Error): this {
    if (!this.destroyed && !this.stream.writableFinished) this.stream.destroy(error ?? new Error('cut off'));
    return super.destroy(error);
  }
}

/** Node's class does not know when the stream has drained. */
Object.defineProperty(Http2Response.prototype, 'writableNeedDrain', {
  get(this: Http2Response) {
    return !this.destroyed && !this.writableEnded && this.req.stream.writableNeedDrain;
  },
});

const finishMessage = (nodeHttp.ServerResponse.prototype as unknown as Sender)._finish;

/** Never sent: Node's class only looks whether there is one. */
const statusLine = 'HTTP/2.0\r\n';
/** Those of `HTTP/1.1 200 OK` and of the empty line after the headers. */
const statusLineBytes = 19;
/** What a line of HTTP/1.1 has beside its name and value: `: ` and the line break. */
const lineBytes = 4;
/** Those of `Date: Thu, 26 Nov 2026 05:54:57 GMT`. */
const dateLineBytes = 37;

/** Node sends no higher one over HTTP/2. A client treats it as a 5xx in any case (RFC 9110 section 15). */
const statusMax = 599;

function pairsOf(flat: readonly string[]): [string, string][] {
  return flat.flatMap((name, index) => (index % 2 === 0 ? [[name, flat[index + 1] ?? '']] : []));
}

function ignore(): void {}

function onDrain(this: StreamSocket): void {
  this._httpMessage?.emit('drain');
}

function onWantTrailers(this: StreamSocket): void {
  this._httpMessage?.sendTrailers();
}

/**
 * Reads what has arrived of a body that nothing else reads, so that the stream of a short one ends. The client of a longer
 * one gets some time to notice that it has its response.
 */
function onFinish(this: Http2Response): void {
  const { req } = this;
  if (this.hasSwitched()) return;
  req.dumpUnread();
  if (!this.hasTrailers) cutShortLater(req);
}

const cutShortMs = 1000;

/**
 * Cuts a request short unless it ends in time. Not at once, because nghttp2 sends a reset before a head or trailers that
 * wait for a write to end, and then leaves them out.
 */
function cutShortLater(req: Http2Request): void {
  if (req.complete && req.connectProtocol === undefined) return;
  const timer = setTimeout(() => req.cutShort(), cutShortMs);
  req.stream.once('close', () => clearTimeout(timer));
}

/** What Node does with the requests of a connection that closes. */
function onClose(this: StreamSocket): void {
  const request = requestOf(this);
  if (request === undefined || request.destroyed) return;
  const hasEnded = request.complete && !wasCutOff(this);
  request.destroy(hasEnded ? undefined : abortedError());
}

export function abortedError(): Error {
  return Object.assign(new Error('aborted'), { code: 'ECONNRESET' });
}

/**
 * For a stream that has closed: whether its client has not had the whole response. `writableFinished` may be false then
 * although all has been sent. A client that has all of it may reset the stream instead of ending its body.
 */
export function wasCutOff({ aborted, rstCode, writableFinished }: ServerHttp2Stream): boolean {
  return aborted || (rstCode !== http2Codes.NO_ERROR && !writableFinished);
}

/** Call it before the head is sent, if trailers may follow the body. HTTP/1.1 needs no such call. */
export function expectTrailers(response: ServerResponse): void {
  if (response instanceof Http2Response) response.expectsTrailers = true;
}

/** True for HTTP/2 over `Http2Request`, not for the classes that node:http2 itself offers. */
export function isHttp2(request: IncomingMessage): request is Http2Request {
  return request instanceof Http2Request;
}
