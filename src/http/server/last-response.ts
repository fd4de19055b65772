/** A problem as the last response of a connection, written to the socket itself. */
import type { Duplex } from 'node:stream';
import { errorBody, type Problem } from '../problem.ts';
import { jsonFormatter } from '../representations.ts';

/** Writes the response and closes the connection. */
export function endWithProblem(socket: Duplex, found: Problem): void {
  // On a half-open connection, a late request would still be executed, and a silent peer would keep the socket open.
  socket.end(problemResponse(found), () => socket.destroy());
}

/** The complete response as text. */
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
