/** The status of a gRPC call for the log and the counts. */
import type { Context } from 'koa';
import { requestContext } from '../context.ts';
import { grpcKindOf } from '../grpc/content-type.ts';
import { grpcStatus } from '../grpc/status.ts';

/**
 * The status of a call whose response has closed with this final status of HTTP. Undefined for any other request, or if
 * its service sent none.
 */
export function finalGrpcStatus(ctx: Context, finalStatus: number): number | undefined {
  if (finalStatus === 499 && grpcKindOf(ctx.req) !== undefined) return grpcStatus.CANCELLED;
  return requestContext(ctx).grpcStatus;
}
