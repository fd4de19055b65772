/** What never becomes a request still gets an error body: malformed, oversized and too slow ones. */
import type { Server, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { jsonFormatter } from './formatters.ts';
import { errorBody, type Problem, problem } from './problem.ts';
import type { ProblemSlug } from './problems.ts';

const slugOfCode: Readonly<Record<string, ProblemSlug>> = {
  HPE_HEADER_OVERFLOW: 'headers-too-large',
  HPE_CHUNK_EXTENSIONS_OVERFLOW: 'body-too-large',
  ERR_HTTP_REQUEST_TIMEOUT: 'request-timeout',
};

/** Node keeps the response that is being written here, and its own handler of client errors looks at it too. */
export interface ClientSocket extends Duplex {
  readonly _httpMessage?: ServerResponse | null;
}

/** Node's parser speaks to the socket itself; there is no Accept header to go by, so the body is JSON. */
export function answerClientErrors(server: Server): void {
  server.on('clientError', (error: NodeJS.ErrnoException, socket: ClientSocket) => {
    // In the middle of a response, as when a chunk of the request body is malformed, ours would become a part of it.
    if (error.code === 'ECONNRESET' || !socket.writable || socket._httpMessage?.headersSent === true) {
      socket.destroy();
      return;
    }
    endWithProblem(socket, problem(slugOfCode[error.code ?? ''] ?? 'bad-request'));
  });
}

/** The error body as the last response of a connection on which nobody speaks HTTP any more. */
export function endWithProblem(socket: Duplex, found: Problem): void {
  const body = errorBody(found);
  const response = rawResponse(body.message.replace(': ', ' '), jsonFormatter.format(body, body.message));
  // Left half open, a request that came late would still be carried out, and a silent peer would keep the socket.
  socket.end(response, () => socket.destroy());
}

function rawResponse(statusLine: string, body: string): string {
  const head = [
    `HTTP/1.1 ${statusLine}`,
    `Date: ${new Date().toUTCString()}`,
    `Content-Type: ${jsonFormatter.contentType}`,
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Cache-Control: no-store',
    'X-Content-Type-Options: nosniff',
    'Connection: close',
  ];
  return `${head.join('\r\n')}\r\n\r\n${body}`;
}
