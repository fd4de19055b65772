/** A problem as the response to a request that no stage handles, and as the last one of a connection of HTTP/1.1. */
import type { ServerHttp2Stream } from 'node:http2';
import type { Duplex } from 'node:stream';
import { refusalHeaders } from '../grpc/refusal.ts';
import { errorBody, type Problem } from '../problem.ts';
import { jsonFormatter } from '../representations.ts';

/** Writes the response and closes the connection. */
export function endWithProblem(socket: Duplex, found: Problem): void {
  // On a half-open connection, a late request would still be executed, and a silent peer would keep the socket open.
  socket.end(problemResponse(found), () => socket.destroy());
}

/** The complete response as text. */
export function problemResponse(found: Problem): string {
  const { message, headers, text } = parts(found);
  const head = [
    `HTTP/1.1 ${message.replace(': ', ' ')}`,
    ...[...headers, ['Connection', 'close']].map(([name, value]) => `${name}: ${value}`),
  ];
  return `${head.join('\r\n')}\r\n\r\n${text}`;
}

/**
 * Responds to a request of HTTP/2 and ends its stream. The other streams of the connection go on. A gRPC call, whose
 * content type is `grpcType`, gets headers alone.
 */
export function endStreamWithProblem(stream: ServerHttp2Stream, found: Problem, grpcType?: string): void {
  if (stream.destroyed || stream.closed || stream.headersSent) return;
  const { headers, text } = parts(found);
  if (grpcType !== undefined) {
    const fields = { ...streamHeaders(Object.entries(found.headers ?? {})), ...refusalHeaders(found, grpcType) };
    stream.respond({ ':status': 200, ...fields }, { endStream: true });
  } else {
    stream.respond({ ':status': found.status, ...streamHeaders(headers) });
    stream.end(text);
  }
  // The rest of a body is not wanted.
  stream.close();
}

/** Without `Connection` (RFC 9113 section 8.2.2). Node adds a date unless there is one in lower case. */
function streamHeaders<T>(headers: readonly (readonly [string, T])[]): Record<string, T> {
  const fields = headers.map(([name, value]) => [name.toLowerCase(), value] as const);
  return Object.fromEntries(fields.filter(([name]) => name !== 'connection'));
}

function parts(found: Problem) {
  const body = errorBody(found);
  const text = jsonFormatter.format(body, body.message);
  const headers: (readonly [string, string])[] = [
    ['Date', new Date().toUTCString()],
    ['Content-Type', jsonFormatter.contentType],
    ['Content-Length', String(Buffer.byteLength(text))],
    ...Object.entries(found.headers ?? {}).map(([name, value]) => [name, String(value)] as const),
    ['Cache-Control', 'no-store'],
    ['X-Content-Type-Options', 'nosniff'],
  ];
  return { message: body.message, headers, text };
}
