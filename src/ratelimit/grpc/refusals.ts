/** Reasons why the rate-limit port closes connections and rejects calls, and the detection of rejected calls. */
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { ServerHttp2Stream } from 'node:http2';

/** Each reason with its text in the log. */
export const portRefusals = Object.freeze({
  too_many: 'too many connections',
  silent: 'connections that send nothing',
  unfinished: 'calls that do not end',
  invalid: 'requests without a domain, with a number out of range, or beyond the bounds',
  exhausted: 'messages that are too large, or too many reflection streams or watches',
  unimplemented: 'unknown methods or compressions',
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
 * Reports every call that is rejected on this port, until the returned function is called. grpc-js rejects many calls
 * without running interceptors, but Node publishes all of them, as responses whose initial headers have a gRPC status.
 */
export function watchRefusedCalls(port: number, report: ReportRefusal): () => void {
  function onResponse(message: unknown): void {
    const { stream, headers } = message as SentHeaders;
    const status = headers['grpc-status'];
    if (status === undefined || stream.session?.socket.localPort !== port) return;
    const reason = refusalsByStatus[String(status)];
    if (reason !== undefined) report(reason);
  }
  subscribe(channel, onResponse);
  return () => void unsubscribe(channel, onResponse);
}

const channel = 'http2.server.stream.finish';
