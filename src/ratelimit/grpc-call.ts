/** One unary gRPC call on an HTTP/2 session: it always settles, at the latest at its deadline, and never throws. */
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  constants,
  type IncomingHttpHeaders,
  type IncomingHttpStatusHeader,
  type OutgoingHttpHeaders,
} from 'node:http2';
import { formatFrame, parseFrame } from './grpc-frame.ts';

/**
 * `message` and `status` are what the service said; `unusable` is an answer that is not gRPC: it is alive, but of no use.
 * `late`: nothing until the deadline. `lost`: the connection failed or could not be made.
 */
export type Answer =
  | { readonly kind: 'message'; readonly message: Buffer }
  | { readonly kind: 'status'; readonly code: number; readonly message: string }
  | { readonly kind: 'unusable' | 'late' | 'lost'; readonly reason: string };

export interface Call {
  readonly session: ClientHttp2Session;
  readonly headers: OutgoingHttpHeaders;
  readonly message: Uint8Array;
  readonly timeoutMs: number;
}

/** An answer has a hundred bytes for each descriptor. */
const answerBytesMax = 65_536;

export function callUnary({ session, headers, message, timeoutMs }: Call): Promise<Answer> {
  return new Promise((resolve) => {
    const stream = startStream(session, headers);
    if (stream instanceof Error) return resolve({ kind: 'lost', reason: stream.message });

    const timer = setTimeout(() => settle({ kind: 'late', reason: `it said nothing for ${timeoutMs} ms` }), timeoutMs);
    const settle = (answer: Answer): void => {
      clearTimeout(timer);
      resolve(answer);
      if (!stream.closed) stream.close(constants.NGHTTP2_CANCEL);
    };
    const parts = collectParts(stream, () => settle(unusable(`its answer is longer than ${answerBytesMax} bytes`)));
    stream.on('close', () => settle(answerOf(parts, session, stream.rstCode)));
    stream.end(formatFrame(message));
  });
}

/** The headers of a call; they are the same for every one. */
export function callHeaders(path: string, timeoutMs: number): OutgoingHttpHeaders {
  return {
    ':method': 'POST',
    ':path': path,
    'content-type': 'application/grpc',
    te: 'trailers',
    'grpc-timeout': `${Math.min(Math.max(1, Math.ceil(timeoutMs)), 99_999_999)}m`,
    'grpc-accept-encoding': 'identity',
  };
}

/** Throws of the session (it is closed, or out of streams) become a value. */
function startStream(session: ClientHttp2Session, headers: OutgoingHttpHeaders): ClientHttp2Stream | Error {
  try {
    return session.request(headers);
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
}

/** What has arrived of an answer so far. */
interface Parts {
  headers: (IncomingHttpHeaders & IncomingHttpStatusHeader) | undefined;
  trailers: IncomingHttpHeaders | undefined;
  readonly chunks: Buffer[];
  bytes: number;
  error: Error | undefined;
}

function collectParts(stream: ClientHttp2Stream, onTooLong: () => void): Readonly<Parts> {
  const parts: Parts = { headers: undefined, trailers: undefined, chunks: [], bytes: 0, error: undefined };
  stream.on('response', (headers) => {
    parts.headers = headers;
  });
  stream.on('data', (chunk: Buffer) => {
    parts.chunks.push(chunk);
    parts.bytes += chunk.length;
    if (parts.bytes > answerBytesMax) onTooLong();
  });
  stream.on('trailers', (trailers) => {
    parts.trailers = trailers;
  });
  stream.on('error', (error) => {
    parts.error = error;
  });
  return parts;
}

function answerOf(parts: Readonly<Parts>, session: ClientHttp2Session, resetCode: number): Answer {
  const code = grpcStatusOf(parts);
  if (code === undefined) return session.destroyed ? lost(parts) : unusable(faultOf(parts, resetCode));
  if (code !== 0) return { kind: 'status', code, message: messageOf(parts) };
  const message = parseFrame(Buffer.concat(parts.chunks));
  return message === undefined ? unusable('its answer is not one uncompressed message') : { kind: 'message', message };
}

function lost({ error }: Readonly<Parts>): Answer {
  return { kind: 'lost', reason: error?.message ?? 'the connection ended' };
}

/** In the trailers, or in the headers of an answer without a body; undefined if the answer is not gRPC, or cut short. */
function grpcStatusOf({ headers, trailers }: Parts): number | undefined {
  if (headers?.[':status'] !== 200 || !headers['content-type']?.startsWith('application/grpc')) return undefined;
  const text = (trailers ?? headers)['grpc-status'];
  return typeof text === 'string' && /^\d{1,3}$/.test(text) ? Number(text) : undefined;
}

function faultOf({ headers }: Parts, resetCode: number): string {
  if (headers === undefined) return `it reset the stream (${resetCode})`;
  if (headers[':status'] !== 200) return `it answered with HTTP status ${headers[':status']}`;
  if (!headers['content-type']?.startsWith('application/grpc')) return 'its answer is not gRPC';
  return 'its answer has no grpc-status';
}

/** `grpc-message` is percent-encoded; one that is not decodes to itself. */
function messageOf({ headers, trailers }: Parts): string {
  const text = String((trailers ?? headers)?.['grpc-message'] ?? '');
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function unusable(reason: string): Answer {
  return { kind: 'unusable', reason };
}
