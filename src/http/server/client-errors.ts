/** An error body for what never becomes a request: malformed, oversized, too slow. */
import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { errorBody, type Problem, problem } from '../problem.ts';
import { jsonFormatter } from '../representations.ts';
import type { Connections } from './connections.ts';
import {
  type ClientError,
  type ClientSocket,
  hasUnknownMethod,
  type LogClientError,
  lacksHost,
  missingHost,
  missingHostCode,
  unknownMethod,
} from './refused-request.ts';

const problemOfCode: Readonly<Record<string, () => Problem>> = {
  HPE_HEADER_OVERFLOW: () => problem('headers-too-large'),
  HPE_CHUNK_EXTENSIONS_OVERFLOW: () => problem('body-too-large'),
  ERR_HTTP_REQUEST_TIMEOUT: () => problem('request-timeout'),
  [missingHostCode]: () => problem('bad-request', { detail: 'A request of HTTP/1.1 needs a Host header.' }),
};

/**
 * Node's own 400 has no body, and with a listener closing the socket is up to us (nodejs/node#46584). The parser failed,
 * so there is no Accept header, and the body is JSON. Requests before the faulty one get their answers first. `log`: of
 * each. @default none
 */
export function answerClientErrors(server: Server, refuse: Connections['refuse'], log?: LogClientError): void {
  const refused = new WeakSet<ClientSocket>();
  // Before the TLS handshake nothing can be written, and `end` would wait for ever (fastify/fastify#3251).
  server.prependListener('tlsClientError', (_error: Error, socket: Duplex) => socket.destroy());
  server.on('clientError', (error: ClientError, socket: ClientSocket) => {
    // The parser goes on to fail with each packet that follows.
    if (refused.has(socket)) return;
    refused.add(socket);
    if (error.code === 'ECONNRESET' || !socket.writable) {
      socket.destroy();
      return;
    }
    if (leavesAnsweredBody(error, socket)) {
      socket.end();
      return;
    }
    const found = problemOf(error);
    log?.(error, socket, statusFor(socket, found));
    refuse(socket, () => endInPlace(socket, found));
  });
  // Node takes it for a switch of protocols. Without a listener it would close the connection.
  server.on('connect', (req: IncomingMessage, socket: ClientSocket) => {
    socket.on('error', () => socket.destroy()).on('timeout', () => socket.destroy());
    server.emit('clientError', unknownMethod(req), socket);
  });
}

/** Refuses what is no whole request of HTTP/1.1; Node's own refusal has no body, and is not logged. */
export function requireHost(server: Server, serve: RequestListener): RequestListener {
  return (req, res) => {
    if (lacksHost(req)) server.emit('clientError', missingHost(), req.socket);
    else serve(req, res);
  };
}

/** Undefined in the middle of the response to the faulty request, as when a chunk of its body is malformed. */
function statusFor({ _httpMessage: response }: ClientSocket, { status }: Problem): number | undefined {
  return response?.headersSent === true && !response.req.complete ? undefined : status;
}

/** A client that has its answer, such as a 401, need not send the rest of the body: it has no other answer, nor a line in the log. */
function leavesAnsweredBody({ code }: ClientError, { _httpMessage: response, parser }: ClientSocket): boolean {
  return code === 'HPE_INVALID_EOF_STATE' && !response && parser?.incoming?.complete === false;
}

/** In place of the response to the faulty request, if it became one; our bytes would become part of one that has begun. */
function endInPlace(socket: ClientSocket, found: Problem): void {
  const { _httpMessage: response } = socket;
  if (response?.headersSent) {
    socket.destroy();
    return;
  }
  if (response) (response as Carrier)[sentStatusKey] = found.status;
  endWithProblem(socket, found);
}

function problemOf(error: ClientError): Problem {
  const found = problemOfCode[error.code ?? ''];
  return found?.() ?? problem(hasUnknownMethod(error) ? 'unknown-method' : 'bad-request');
}

const sentStatusKey = Symbol('sent status');

interface Carrier {
  [sentStatusKey]?: number;
}

/** The status that the client got in place of this response, for example when its body came too late. */
export function sentStatusOf(res: ServerResponse): number | undefined {
  return (res as Carrier)[sentStatusKey];
}

/** Writes the error body as the last response of the connection. */
export function endWithProblem(socket: Duplex, found: Problem): void {
  // Left half open, a request that comes late would still be carried out, and a silent peer would keep the socket.
  socket.end(problemResponse(found), () => socket.destroy());
}

/** A whole response as text, the last one of its connection. */
export function problemResponse(found: Problem): string {
  const body = errorBody(found);
  const text = jsonFormatter.format(body, body.message);
  const head = [
    `HTTP/1.1 ${body.message.replace(': ', ' ')}`,
    `Date: ${new Date().toUTCString()}`,
    `Content-Type: ${jsonFormatter.contentType}`,
    `Content-Length: ${Buffer.byteLength(text)}`,
    ...Object.entries(found.headers ?? {}).map(([name, value]) => `${name}: ${value}`),
    'Cache-Control: no-store',
    'X-Content-Type-Options: nosniff',
    'Connection: close',
  ];
  return `${head.join('\r\n')}\r\n\r\n${text}`;
}
