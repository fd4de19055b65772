/** Error responses to input that never becomes a request because it is malformed, oversized or too slow. */
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
  [missingHostCode]: () => problem('bad-request', { detail: 'An HTTP/1.1 request needs a Host header.' }),
};

/**
 * Sends an error body, which Node's own 400 lacks. It is always JSON, because after a parse error the Accept header is
 * unknown. Pipelined requests before the faulty one get their responses first. `log` is called for each error. With a
 * `clientError` listener, closing the socket is up to us (nodejs/node#46584).
 */
export function respondToClientErrors(server: Server, refuse: Connections['refuse'], log?: LogClientError): void {
  const refused = new WeakSet<ClientSocket>();
  // Nothing can be written before the TLS handshake, and `end` would wait forever (fastify/fastify#3251).
  server.prependListener('tlsClientError', (_error: Error, socket: Duplex) => socket.destroy());
  server.on('clientError', (error: ClientError, socket: ClientSocket) => {
    // The parser fails again with every packet that follows.
    if (refused.has(socket)) return;
    refused.add(socket);
    if (error.code === 'ECONNRESET' || !socket.writable) {
      socket.destroy();
      return;
    }
    if (abandonsRespondedBody(error, socket)) {
      socket.end();
      return;
    }
    const found = problemOf(error);
    log?.(error, socket, statusFor(socket, found));
    refuse(socket, () => replaceResponse(socket, found));
  });
  // Node treats CONNECT like an upgrade. Without a listener it would close the connection without a response.
  server.on('connect', (req: IncomingMessage, socket: ClientSocket) => {
    socket.on('error', () => socket.destroy()).on('timeout', () => socket.destroy());
    server.emit('clientError', unknownMethod(req), socket);
  });
}

/** Rejects HTTP/1.1 requests without `Host`. Node's own rejection has no body and is not logged. */
export function requireHost(server: Server, serve: RequestListener): RequestListener {
  return (req, res) => {
    if (lacksHost(req)) server.emit('clientError', missingHost(), req.socket);
    else serve(req, res);
  };
}

/** Undefined if the response to the faulty request has already begun, for example when a later chunk is malformed. */
function statusFor({ _httpMessage: response }: ClientSocket, { status }: Problem): number | undefined {
  return response?.headersSent === true && !response.req.complete ? undefined : status;
}

/** True if the client got its response, such as a 401, and skips the rest of the body. That is not an error. */
function abandonsRespondedBody({ code }: ClientError, { _httpMessage: response, parser }: ClientSocket): boolean {
  return code === 'HPE_INVALID_EOF_STATE' && !response && parser?.incoming?.complete === false;
}

/** Sends the problem instead of a response to the faulty request. Only closes if that response has already begun. */
function replaceResponse(socket: ClientSocket, found: Problem): void {
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

/** The status that the client got instead of this response, for example because its body arrived too late. */
export function sentStatusOf(res: ServerResponse): number | undefined {
  return (res as Carrier)[sentStatusKey];
}

/** Writes the error body as the last response of the connection. */
export function endWithProblem(socket: Duplex, found: Problem): void {
  // On a half-open connection, a late request would still be executed, and a silent peer would keep the socket open.
  socket.end(problemResponse(found), () => socket.destroy());
}

/** A complete response as text, the last one of its connection. */
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
