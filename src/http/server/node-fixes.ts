/** Works around Node's HTTP server: bodies, stalled responses, forgotten messages, a hook before the head, its bytes. */
import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { setImmediate } from 'node:timers/promises';
import { isHttp2 } from './http2/messages.ts';
import { nodeHttp } from './node-http.ts';

/** A socket with the response that is being written, an internal that Node's own handler of client errors uses too. */
export interface ClientSocket extends Duplex {
  readonly _httpMessage?: ServerResponse | null;
  readonly remoteAddress?: string | undefined;
  readonly bytesRead?: number;
}

/** Looks only at the head. */
export function announcesBody(req: IncomingMessage): boolean {
  if (isHttp2(req)) return req.announcesBody;
  const { headers } = req;
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

/** A server of HTTP/1.0 before this one may have found another end of the request (RFC 9112 section 6.1). */
function isEndUncertain({ httpVersion, headers }: IncomingMessage): boolean {
  return httpVersion === '1.0' && headers['transfer-encoding'] !== undefined;
}

/**
 * Sends `100 Continue` when the body is first read. Node would send it immediately (nodejs/node#20744, still so in
 * 26.10) and so invite a body that is then rejected because of its size, its sender or a limit. If it is never sent,
 * Node closes the connection after the response.
 */
export function sendContinueOnRead(server: Server): void {
  server.on('checkContinue', (request: IncomingMessage, response: ServerResponse) => {
    continueOnRead(request, response);
    server.emit('request', request, response);
  });
  // Ignores unknown expectations, as RFC 9110 section 10.1.1 allows and nginx does. Node's own 417 has no body and
  // bypasses every stage.
  server.on('checkExpectation', (request: IncomingMessage, response: ServerResponse) => {
    delete request.headers.expect;
    server.emit('request', request, response);
  });
}

/** Sends `100 Continue` when the body is first read. */
export function continueOnRead(request: IncomingMessage, response: ServerResponse): void {
  const read = request._read;
  request._read = (size) => {
    request._read = read;
    // After the response, the body is read only to be discarded. A queued response is to a request without a body, and
    // Node would send its 100 after its head.
    if (!response.headersSent && response.socket !== null) response.writeContinue();
    read.call(request, size);
  };
}

const noTimeoutKey = Symbol('no body time-out');

interface Carrier {
  [noTimeoutKey]?: true;
}

/** Call it before streaming the body with an idle time-out of your own: its total duration is then unlimited. */
export function disableBodyTimeout(req: IncomingMessage): void {
  (req as Carrier)[noTimeoutKey] = true;
}

/**
 * Limits the time for a body like Node's `requestTimeout`, but lets requests opt out. The time starts with the call of
 * the handler, because the body of a pipelined request is not read before its turn.
 */
export function limitBodyTime(handler: RequestListener, timeoutMs: number, onLate: RequestListener): RequestListener {
  function check(req: IncomingMessage, res: ServerResponse<IncomingMessage>): void {
    if (!req.complete && (req as Carrier)[noTimeoutKey] !== true) onLate(req, res);
  }
  return (req, res) => {
    if (announcesBody(req)) {
      const timer = setTimeout(check, timeoutMs, req, res);
      req.once('close', () => clearTimeout(timer));
    }
    handler(req, res);
  };
}

/** The defaults of nginx: `lingering_time` and `lingering_timeout`. */
const lingerMs = 30_000;
const lingerIdleMs = 5_000;

/**
 * Closes the connection after a response that is sent before the end of the request body. Some clients then skip the
 * rest of the body and send the next request, as HAProxy does for HTTP/2 clients, and it would be parsed as body. Reads
 * and discards data for a while before closing: with unread bytes, closing resets the connection, and the reset can
 * overtake the response. Also closes the connection if the end of the body is uncertain.
 */
export function lingerAfterEarlyResponses(server: Server): void {
  server.prependListener('request', (req, res) => {
    // Includes requests with `Expect: 100-continue`: a client need not wait for the 100 (RFC 9110 section 10.1.1), and
    // Caddy does not.
    if (!announcesBody(req)) return;
    beforeHead(res, () => {
      if (!req.complete || isEndUncertain(req)) res.shouldKeepAlive = false;
    });
    res.once('prefinish', () => void (!req.complete && linger(req)));
  });
}

/** Lets the parser finish a body that arrived with the head, so that a rejection can keep the connection open. */
export async function parseBufferedBody(req: IncomingMessage): Promise<void> {
  if (!req.complete && announcesBody(req)) await setImmediate();
}

/** Overrides `destroySoon`, which Node calls after the last response of a connection. */
function linger(req: IncomingMessage): void {
  const socket: Socket = req.socket;
  socket.destroySoon = () => {
    const deadline = setTimeout(() => socket.destroy(), lingerMs);
    socket.once('close', () => clearTimeout(deadline));
    socket.setTimeout(lingerIdleMs);
    socket.end();
    req.once('end', () => socket.destroy()).resume();
  };
}

/**
 * Closes the connection of a client that stops reading its response for this long. Node has no such time-out. 0
 * disables it. With a `timeout` listener, Node leaves all idle connections to it (see `server.setTimeout`), including
 * those between two requests.
 */
export function closeStalledResponses(server: Server, idleTimeoutMs: number): void {
  server.setTimeout(idleTimeoutMs, (socket: ClientSocket) => {
    const isBetweenRequests = !socket._httpMessage;
    if (isBetweenRequests || socket.writableLength > 0) socket.destroy();
  });
}

const openKey = Symbol('open requests and queued responses');

interface CarrierSocket extends Socket {
  [openKey]?: Set<IncomingMessage | ServerResponse>;
}

/**
 * Node forgets two things when a connection closes: a request whose response ended before its body, and a queued
 * response that CONNECT or an upgrade follows. Neither would ever emit `close`, and what waits for it (a time-out, a copy
 * of the body, a call to a service) would never end. Works in a host application's server too.
 */
export function closeWithConnection(req: IncomingMessage, res: ServerResponse): void {
  if (announcesBody(req)) closeLater(req.socket, req);
  // This response is not queued, so Node closes it.
  if (res.socket !== null) return;
  closeLater(req.socket, res);
  // Node gives even a response that was cut off its turn, and then waits for the rest of it.
  res.once('socket', (connection: Socket) => void (res.destroyed && connection.destroy()));
}

/** Uses one listener per connection, because a client may pipeline many requests. */
function closeLater(socket: CarrierSocket, message: IncomingMessage | ServerResponse): void {
  const open = openOn(socket);
  open.add(message);
  message.once('close', () => open.delete(message));
}

function openOn(socket: CarrierSocket): Set<IncomingMessage | ServerResponse> {
  const known = socket[openKey];
  if (known !== undefined) return known;
  const open = new Set<IncomingMessage | ServerResponse>();
  socket[openKey] = open;
  socket.once('close', () => {
    for (const message of open) message.destroy();
  });
  return open;
}

/**
 * Calls `write` once, right before the head is sent, when all other headers are final. This includes errors, 101, and
 * responses that bypass Koa, but not other interim responses (1xx). Node has no event for this; the npm package
 * on-headers works the same way.
 */
export function beforeHead(res: ServerResponse, write: (res: ServerResponse) => void): void {
  const { writeHead } = res;
  res.writeHead = function writeHeadLast(statusCode: number, ...rest: readonly unknown[]) {
    applyHeaders(res, rest.at(-1));
    res.writeHead = writeHead;
    write(res);
    const [message] = rest;
    const head = typeof message === 'string' ? [statusCode, message] : [statusCode];
    return writeHead.apply(res, head as [statusCode: number]);
  };
}

/** Applies the headers passed to `writeHead` as Node does: they replace existing ones, and a list may repeat a name. */
function applyHeaders(res: ServerResponse, headers: unknown): void {
  if (Array.isArray(headers)) {
    const names = headers.filter((_, index) => index % 2 === 0);
    for (const name of names) res.removeHeader(name);
    for (const [index, name] of names.entries()) res.appendHeader(name, headers[2 * index + 1]);
  } else if (typeof headers === 'object' && headers !== null) {
    for (const [name, value] of Object.entries(headers)) res.setHeader(name, value);
  }
}

/** A response with the internals that build and send its head. */
interface HeadSender extends ServerResponse {
  _header: string;
  _storeHeader(firstLine: string, headers: unknown): void;
  _send(data: string | Uint8Array, encoding?: BufferEncoding | null, ...rest: readonly unknown[]): boolean;
}

const { _storeHeader, _send } = nodeHttp.OutgoingMessage.prototype as HeadSender;

/**
 * Sends each character of the head as one byte, so that header values reach the client as the bytes that they are (RFC
 * 9110 section 5.5). Node writes the head as UTF-8 if a string follows, and `flushHeaders` always does. It decodes a
 * `Content-Disposition` as UTF-8 and then may send only the low bytes of its code points, which can be CR and LF: the
 * client would receive headers that somebody else chose (nodejs/node#50213 and #58240, both still so in 26). Node
 * builds every head in `_storeHeader`, whoever sends the response and however, in a host application's server too.
 * HTTP/2 has no such fault.
 */
export function sendHeadAsBytes(res: ServerResponse): void {
  if (isHttp2(res.req)) return;
  (res as HeadSender)._storeHeader = storeHead;
}

function storeHead(this: HeadSender, firstLine: string, headers: unknown): void {
  _storeHeader.call(this, firstLine, headers);
  const head = this._header;
  // The encoding of ASCII does not matter.
  if (Buffer.byteLength(head) === head.length) return;
  this._header = withDisposition(head, this.getHeader('content-disposition'));
  this._send = sendHead;
}

/** Restores the values of `Content-Disposition`, which Node may have decoded. It keeps a decoded list as Buffers. */
function withDisposition(head: string, value: number | string | readonly string[] | undefined): string {
  if (value === undefined) return head;
  const values = [value].flat().map((one) => Buffer.from(one as string, 'latin1').toString('latin1'));
  return head.replace(/(\r\ncontent-disposition: )[^\r\n]*/gi, (_, start) => start + values.shift());
}

/** Keeps Node from joining the head and a string, for which it would choose one encoding. Later writes are Node's own. */
function sendHead(this: HeadSender, data: string | Uint8Array, encoding?: BufferEncoding | null, ...rest: unknown[]) {
  this._send = _send;
  const bytes = typeof data === 'string' ? Buffer.from(data, encoding ?? 'utf8') : data;
  return _send.call(this, bytes, null, ...rest);
}
