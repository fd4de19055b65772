/** Responds to input that never becomes a request because it is malformed, oversized or too slow, and logs it. */
import type { IncomingMessage, RequestListener, Server } from 'node:http';
import type { Logger } from '#foundation';
import { replaceStatus } from '../log/final-status.ts';
import { type Problem, problem } from '../problem.ts';
import { pathOf } from '../target.ts';
import type { Connections } from './connections.ts';
import { endWithProblem } from './last-response.ts';
import type { ClientSocket } from './node-fixes.ts';
import { nodeHttp } from './node-http.ts';
import { createThrottledLog } from './throttled-log.ts';

const missingHostCode = 'ERR_MISSING_HOST';
const unknownMethodCode = 'HPE_INVALID_METHOD';

const problemOfCode: Readonly<Record<string, () => Problem>> = {
  HPE_HEADER_OVERFLOW: () => problem('headers-too-large'),
  HPE_CHUNK_EXTENSIONS_OVERFLOW: () => problem('body-too-large'),
  ERR_HTTP_REQUEST_TIMEOUT: () => problem('request-timeout'),
  [missingHostCode]: () => problem('bad-request', { detail: 'An HTTP/1.1 request needs a Host header.' }),
};

/** The error of a `clientError` event: the parser rejected the input, or it did not arrive in time. */
interface ClientError extends NodeJS.ErrnoException {
  /** The parser's message, which never contains the input itself. */
  readonly reason?: string;
  readonly rawPacket?: Buffer;
  /** The position in `rawPacket` where parsing stopped. */
  readonly bytesParsed?: number;
}

/** `status` is the status that the client receives. Undefined if its connection is closed in mid-response. */
type LogClientError = (error: ClientError, socket: ClientSocket, status: number | undefined) => void;

/**
 * Sends an error body, which Node's own 400 lacks. It is always JSON, because after a parse error the Accept header is
 * unknown. Pipelined requests before the faulty one get their responses first. `log` is called for each error. With a
 * `clientError` listener, closing the socket is up to us (nodejs/node#46584).
 */
export function respondToClientErrors(server: Server, refuse: Connections['refuse'], log?: LogClientError): void {
  const refused = new WeakSet<ClientSocket>();
  server.on('clientError', (error: ClientError, socket: ClientSocket) => {
    // The parser fails again with every packet that follows.
    if (refused.has(socket)) return;
    refused.add(socket);
    // The socket has ended if the client got its response, such as a 401, and skips the rest of the body.
    if (error.code === 'ECONNRESET' || !socket.writable) {
      socket.destroy();
      return;
    }
    const found = problemOf(error);
    const hasLeft = endsWithinBody(error, socket);
    if (!hasLeft) log?.(error, socket, statusFor(socket, found));
    refuse(socket, () => replaceResponse(socket, found, hasLeft));
  });
  // Node treats CONNECT like an upgrade. Without a listener it would close the connection without a response.
  server.on('connect', (req: IncomingMessage, socket: ClientSocket) => {
    socket.on('error', () => socket.destroy()).on('timeout', () => socket.destroy());
    server.emit('clientError', unknownMethod(req), socket);
  });
}

/** Rejects HTTP/1.1 requests without `Host` (RFC 9112 section 3.2). Node's own rejection has no body and is not logged. */
export function requireHost(server: Server, serve: RequestListener): RequestListener {
  return (req, res) => {
    if (req.httpVersion !== '1.1' || req.headers.host !== undefined) return void serve(req, res);
    const error = Object.assign(new Error('Missing Host header'), { code: missingHostCode });
    server.emit('clientError', error, req.socket);
  };
}

/** Undefined if the response to the faulty request has already begun, for example when a later chunk is malformed. */
function statusFor({ _httpMessage: response }: ClientSocket, { status }: Problem): number | undefined {
  return response?.headersSent === true && !response.req.complete ? undefined : status;
}

/** True when the client closes its side in the middle of a body. Nearly always it has left, such as a closed tab. */
function endsWithinBody({ code }: ClientError, { _httpMessage: response }: ClientSocket): boolean {
  return code === 'HPE_INVALID_EOF_STATE' && response?.req.complete === false;
}

/** Sends the problem instead of a response to the faulty request. Only closes if that response has already begun. */
function replaceResponse(socket: ClientSocket, found: Problem, hasLeft: boolean): void {
  const { _httpMessage: response } = socket;
  if (response?.headersSent) {
    socket.destroy();
    return;
  }
  if (response && !hasLeft) replaceStatus(response, found.status);
  endWithProblem(socket, found);
}

function problemOf(error: ClientError): Problem {
  const found = problemOfCode[error.code ?? ''];
  return found?.() ?? problem(hasUnknownMethod(error) ? 'unknown-method' : 'bad-request');
}

/** True for a complete request line with a method that Node's parser does not know or does not accept in HTTP. */
function hasUnknownMethod({ code, reason, rawPacket, bytesParsed = 0 }: ClientError): boolean {
  const isAboutMethod = code === unknownMethodCode || reason === 'Invalid method for HTTP/x.x request';
  const line = isAboutMethod && rawPacket !== undefined ? wholeLineBefore(rawPacket, bytesParsed) : undefined;
  return line !== undefined && bytesParsed < line.end;
}

/** The error that the parser would report if it did not know the method. */
function unknownMethod({ method, url, httpVersion }: IncomingMessage): ClientError {
  const rawPacket = Buffer.from(`${method} ${url} HTTP/${httpVersion}`, 'latin1');
  return Object.assign(new Error(`Unknown method ${method}`), { code: unknownMethodCode, rawPacket });
}

/** The last line before the error that looks like a request line. A header line never does. */
function wholeLineBefore(packet: Buffer, position = 0) {
  const lines = packet.toString('latin1').matchAll(/^([!#$%&'*+.^`|~\w-]{1,32}) ([^\r\n]*) HTTP\/1\.\d\r?$/gm);
  const found = [...lines].findLast(({ index }) => index <= position);
  return found && { method: found[1], target: found[2], end: found.index + found[0].length };
}

const reasonOfCode: Readonly<Record<string, string>> = {
  HPE_PAUSED_H2_UPGRADE: 'HTTP/2 is not served here: HTTP2 is false, or the connection began with HTTP/1.1',
};

export function createClientErrorLog(logger: Pick<Logger, 'warn'>): LogClientError {
  const log = createThrottledLog(logger, 'a client sent something that is not a valid HTTP request');
  return function logClientError(error, socket, status) {
    // Ignores connections without data: browsers open them ahead of time, and load balancers for TCP health checks.
    if (socket.bytesRead === 0) return;
    const { code } = error;
    const reason = reasonOfCode[code ?? ''] ?? error.reason ?? error.message;
    log(() => ({ client: socket.remoteAddress, status, code, reason, ...requestLineOf(error, socket) }));
  };
}

interface RequestLine {
  readonly method: string;
  /** Without the query, which may contain secrets. */
  readonly path: string;
}

/** Undefined if the last packet contains no request line. Never returns a header line. */
function requestLineOf(
  { rawPacket, bytesParsed }: ClientError,
  { _httpMessage }: ClientSocket,
): RequestLine | undefined {
  const req = _httpMessage?.req;
  // The error is in the body of a request, so the last packet contains no head.
  if (req?.complete === false) return requestLine(req.method, req.url);
  if (rawPacket === undefined) return undefined;
  const whole = wholeLineBefore(rawPacket, bytesParsed);
  if (whole !== undefined) return requestLine(whole.method, whole.target);
  // The target is longer than the limit for all headers, so the line is incomplete.
  const [method, target] = rawPacket.toString('latin1', 0, 2 * pathBytesMax).split(' ', 2);
  return target?.startsWith('/') && nodeHttp.METHODS.includes(method ?? '') ? requestLine(method, target) : undefined;
}

const pathBytesMax = 200;

export function requestLine(method = '', target = ''): RequestLine {
  const path = pathOf(target).replace(/[^\x21-\x7e]/g, percentEncode);
  return { method, path: path.slice(0, pathBytesMax) };
}

function percentEncode(byte: string): string {
  return `%${byte.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`;
}
