/** What never becomes a request still gets an error body: malformed, oversized and too slow ones. */
import type { Server } from 'node:http';
import type { Duplex } from 'node:stream';
import { jsonFormatter } from './formatters.ts';
import { errorBody, problem } from './problem.ts';
import type { ProblemSlug } from './problems.ts';

const slugOfCode: Readonly<Record<string, ProblemSlug>> = {
  HPE_HEADER_OVERFLOW: 'headers-too-large',
  ERR_HTTP_REQUEST_TIMEOUT: 'request-timeout',
};

/** Node's parser speaks to the socket itself; there is no Accept header to go by, so the body is JSON. */
export function answerClientErrors(server: Server): void {
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Duplex) => {
    if (error.code === 'ECONNRESET' || !socket.writable) {
      socket.destroy();
      return;
    }
    const body = errorBody(problem(slugOfCode[error.code ?? ''] ?? 'bad-request'));
    socket.end(rawResponse(body.message.replace(': ', ' '), jsonFormatter.format(body, body.message)));
  });
}

function rawResponse(statusLine: string, body: string): string {
  const head = [
    `HTTP/1.1 ${statusLine}`,
    `Content-Type: ${jsonFormatter.contentType}`,
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Cache-Control: no-store',
    'Connection: close',
  ];
  return `${head.join('\r\n')}\r\n\r\n${body}`;
}
