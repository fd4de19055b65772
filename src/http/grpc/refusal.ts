/** A problem in answer to a gRPC call: a response of headers alone, with the status and what happened. */
import { type Problem, reasonOf } from '../problem.ts';
import { problemTitle } from '../problems.ts';
import { encodeGrpcMessage } from './message.ts';
import { grpcStatusOfRefusal } from './status.ts';

/**
 * Returns the headers of a refusal besides those of its problem. The status of HTTP is 200, because gRPC clients read
 * nothing else (Trailers-Only in grpc/grpc, doc/PROTOCOL-HTTP2.md). gRPC-Web clients read the same headers.
 */
export function refusalHeaders(found: Problem, contentType: string): Record<string, string> {
  const pushbackMs = pushbackOf(found);
  return {
    'Content-Type': contentType,
    'grpc-status': String(grpcStatusOfRefusal(found.status)),
    'grpc-message': messageOf(found),
    ...(pushbackMs === undefined ? {} : { 'grpc-retry-pushback-ms': pushbackMs }),
  };
}

/** Another party may have chosen the status, such as an auth service. The text of the table would not fit. */
function messageOf({ slug, kind, status, detail }: Problem): string {
  const isOurs = status === kind.status;
  const title = isOurs ? problemTitle(slug, kind) : reasonOf(status);
  const text = detail ?? (isOurs ? kind.meaning : undefined);
  return encodeGrpcMessage(text === undefined ? title : `${title}: ${text}`);
}

/**
 * A client that repeats calls waits for as long (grpc/proposal, A6-client-retries.md). `Retry-After` may also be a date,
 * which other parties send.
 */
function pushbackOf({ headers = {} }: Problem): string | undefined {
  const [, value] = Object.entries(headers).find(([name]) => name.toLowerCase() === 'retry-after') ?? [];
  return /^\d{1,9}$/.test(String(value)) ? String(Math.min(Number(value) * 1000, pushbackMsMax)) : undefined;
}

/** Clients read a number of 32 bits. */
const pushbackMsMax = 2 ** 31 - 1;
