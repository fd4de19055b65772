/** Why the rate-limit port closes connections and rejects calls. Reports rejected calls, and closes their streams. */
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { ServerHttp2Stream } from 'node:http2';

/** Each reason with its text in the log. */
export const portRefusals = Object.freeze({
  too_many: 'too many connections',
  silent: 'connections that send nothing',
  unfinished: 'calls that do not end',
  invalid: 'requests without a domain, with a number out of range, or beyond the bounds',
  exhausted: 'messages that are too large, or too many reflection streams or watches',
  unimplemented: 'unknown methods or compressed messages',
  unreadable: 'malformed messages',
});

export type PortRefusal = keyof typeof portRefusals;

/** Called for every connection that the port closes and every call that it rejects. */
export type ReportRefusal = (reason: PortRefusal) => void;

/** The reasons by gRPC status code. */
const refusalsByStatus: Readonly<Record<string, PortRefusal>> = Object.freeze({
  3: 'invalid',
  8: 'exhausted',
  12: 'unimplemented',
  13: 'unreadable',
});

interface SentHeaders {
  readonly stream: ServerHttp2Stream;
  readonly headers: Readonly<Record<string, unknown>>;
}

/**
 * Reports every call that is rejected on this port, and closes the streams of those whose client has not ended its
 * request, until the returned function is called. grpc-js rejects many calls without running interceptors, but Node
 * publishes all of them, as responses whose initial headers have a gRPC status.
 */
export function watchResponses(port: number, report: ReportRefusal): () => void {
  function onResponse(message: unknown): void {
    const { stream, headers } = message as SentHeaders;
    const status = headers['grpc-status'];
    const isEarly = !stream.readableEnded;
    if ((status === undefined && !isEarly) || stream.session?.socket.localPort !== port) return;
    if (isEarly) closeAfterResponse(stream, status !== undefined);
    const reason = refusalsByStatus[String(status)];
    if (reason !== undefined) report(reason);
  }
  subscribe(channel, onResponse);
  return () => void unsubscribe(channel, onResponse);
}

const channel = 'http2.server.stream.finish';

/** Otherwise the stream would stay open for as long as the client does not end its request (RFC 9113 section 8.1). */
function closeAfterResponse(stream: ServerHttp2Stream, isComplete: boolean): void {
  const close = () => setImmediate(() => !stream.readableEnded && stream.close());
  if (isComplete) close();
  // Node sends the trailers in the next turn of the event loop.
  else stream.once('wantTrailers', () => setImmediate(close));
}
