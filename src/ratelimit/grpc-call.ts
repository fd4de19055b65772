/** One unary gRPC call on an HTTP/2 session: it always settles, at the latest at its deadline, and never throws. */
import { formatFrame, parseFrame } from './grpc-frame.ts';
import type { Field } from './hpack-static-table.ts';
import type { Http2Session } from './http2-session.ts';
import { fieldValue, type Stream, type StreamEnd } from './http2-stream.ts';

/**
 * `message` and `status` are what the service said; `unusable` is an answer that is not gRPC: it is alive, but of no use.
 * `late`: no answer by the deadline. `lost`: the connection failed or could not be made.
 */
export type Answer =
  | { readonly kind: 'message'; readonly message: Buffer }
  | { readonly kind: 'status'; readonly code: number; readonly message: string }
  | { readonly kind: 'unusable' | 'late' | 'lost'; readonly reason: string };

export interface Call {
  readonly session: Http2Session;
  readonly message: Uint8Array;
  readonly timeoutMs: number;
}

/** An answer has a hundred bytes for each descriptor. */
const answerBytesMax = 65_536;

export function callUnary({ session, message, timeoutMs }: Call): Promise<Answer> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    const timer = setTimeout(() => abandon({ kind: 'late', reason: `it said nothing for ${timeoutMs} ms` }), timeoutMs);
    const settle = (answer: Answer): void => {
      clearTimeout(timer);
      resolve(answer);
    };
    const abandon = (answer: Answer): void => {
      settle(answer);
      session.cancel(stream);
    };
    const stream = session.request(formatFrame(message), {
      onData(chunk) {
        chunks.push(chunk);
        bytes += chunk.length;
        if (bytes > answerBytesMax) abandon(unusable(`its answer is longer than ${answerBytesMax} bytes`));
      },
      onEnd: (end, ended) => settle(answerOf(end, ended, chunks)),
    });
  });
}

/** The header fields of a call, which are the same for every one to a service. */
export function callHeaders(authority: string, path: string, timeoutMs: number): readonly Field[] {
  return [
    { name: ':method', value: 'POST' },
    { name: ':scheme', value: 'http' },
    { name: ':authority', value: authority },
    { name: ':path', value: path },
    { name: 'content-type', value: 'application/grpc' },
    { name: 'te', value: 'trailers' },
    { name: 'grpc-timeout', value: `${Math.min(Math.max(1, Math.ceil(timeoutMs)), 99_999_999)}m` },
    { name: 'grpc-accept-encoding', value: 'identity' },
  ];
}

function answerOf(end: StreamEnd, stream: Stream, chunks: readonly Buffer[]): Answer {
  if (end.kind === 'lost') return { kind: 'lost', reason: end.error.message };
  const code = grpcStatusOf(stream);
  if (code === deadlineExceeded || isCancelled(end))
    return { kind: 'late', reason: 'it ended the call at its deadline' };
  if (code === undefined) return unusable(faultOf(stream, end));
  if (code !== 0) return { kind: 'status', code, message: messageOf(stream) };
  const [first] = chunks;
  const message = parseFrame(chunks.length === 1 && first !== undefined ? first : Buffer.concat(chunks));
  return message === undefined ? unusable('its answer is not one uncompressed message') : { kind: 'message', message };
}

/**
 * The service is told the deadline, and keeps it as well: which of us is first is chance, and its saying so is no answer.
 * grpc-go says nothing, and resets the stream with CANCEL (8).
 */
const deadlineExceeded = 4;

function isCancelled(end: StreamEnd): boolean {
  return end.kind === 'reset' && end.code === 8;
}

/** In the trailers, or in the headers of an answer without a body; undefined if the answer is not gRPC, or cut short. */
function grpcStatusOf({ headers, trailers }: Stream): number | undefined {
  if (fieldValue(headers, ':status') !== '200' || !isGrpc(headers)) return undefined;
  const text = fieldValue(trailers ?? headers, 'grpc-status');
  return text !== undefined && /^\d{1,3}$/.test(text) ? Number(text) : undefined;
}

function isGrpc(headers: readonly Field[] | undefined): boolean {
  return fieldValue(headers, 'content-type')?.startsWith('application/grpc') === true;
}

function faultOf({ headers }: Stream, end: StreamEnd): string {
  if (headers === undefined) return `it reset the stream (${end.kind === 'reset' ? end.code : 0})`;
  const status = fieldValue(headers, ':status');
  if (status !== '200') return `it answered with HTTP status ${status}`;
  return isGrpc(headers) ? 'its answer has no grpc-status' : 'its answer is not gRPC';
}

/** `grpc-message` is percent-encoded; one that is not decodes to itself. */
function messageOf({ headers, trailers }: Stream): string {
  const text = fieldValue(trailers ?? headers, 'grpc-message') ?? '';
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function unusable(reason: string): Answer {
  return { kind: 'unusable', reason };
}
