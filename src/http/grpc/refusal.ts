/** A problem in answer to a gRPC call: a response of headers alone, with the status and what happened. */
import type { Context } from 'koa';
import { requestContext } from '../context.ts';
import { countAs } from '../log/final-status.ts';
import { type Problem, reasonOf } from '../problem.ts';
import { problemTitle } from '../problems.ts';
import { encodeGrpcMessage } from './message.ts';
import { grpcStatusOfRefusal } from './status.ts';

/**
 * Responds with 200, `grpc-status` and `grpc-message`, because gRPC clients read nothing else (Trailers-Only in grpc/grpc,
 * doc/PROTOCOL-HTTP2.md). gRPC-Web clients read the same headers. The counts still show the status of the problem.
 */
export function writeGrpcRefusal(ctx: Context, found: Problem, contentType: string): void {
  const { res } = ctx;
  const status = grpcStatusOfRefusal(found.status);
  ctx.status = 200;
  for (const [name, value] of Object.entries(found.headers ?? {})) ctx.set(name, value as string | string[]);
  // Those of another body, which an auth service has sent.
  ctx.remove('Content-Encoding');
  ctx.set({ 'Content-Type': contentType, 'grpc-status': String(status), 'grpc-message': messageOf(found) });
  const pushbackMs = pushbackOf(ctx.response.get('Retry-After'));
  if (pushbackMs !== undefined) ctx.set('grpc-retry-pushback-ms', pushbackMs);
  // Without a length, the headers are the last frame over HTTP/2.
  ctx.body = '';
  ctx.remove('Content-Length');
  requestContext(ctx).grpcStatus = status;
  countAs(res, found.status);
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
function pushbackOf(retryAfter: string): string | undefined {
  return /^\d{1,6}$/.test(retryAfter) ? String(Number(retryAfter) * 1000) : undefined;
}
