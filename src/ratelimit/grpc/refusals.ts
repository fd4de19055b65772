/** Why the rate-limit port closes connections and refuses calls, and how refused calls are seen. */
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { ServerHttp2Stream } from 'node:http2';

/** In words. */
export const portRefusals = Object.freeze({
  too_many: 'there are too many',
  silent: 'clients that send nothing',
  unfinished: 'calls that do not end',
  invalid: 'requests without a domain, with a wrong number, or beyond the bounds',
  exhausted: 'messages that are too large, too many reflections or too many watches',
  unimplemented: 'methods or compressions that it does not know',
  unreadable: 'messages that cannot be read',
});

export type PortRefusal = keyof typeof portRefusals;

/** Called for each connection that is closed, and each call that is refused. */
export type ReportRefusal = (reason: PortRefusal) => void;

/** By the status of gRPC. */
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
 * Reports each call at this port that is refused, until the function that it returns is called. grpc-js refuses many of
 * them itself, past every interceptor. Node shows all of them, as responses whose first headers have a status.
 */
export function watchRefusedCalls(port: number, report: ReportRefusal): () => void {
  function see(message: unknown): void {
    const { stream, headers } = message as SentHeaders;
    const status = headers['grpc-status'];
    if (status === undefined || stream.session?.socket.localPort !== port) return;
    const reason = refusalsByStatus[String(status)];
    if (reason !== undefined) report(reason);
  }
  subscribe(channel, see);
  return () => void unsubscribe(channel, see);
}

const channel = 'http2.server.stream.finish';
