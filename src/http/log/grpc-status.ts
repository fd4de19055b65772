/** The status of a gRPC call for the log and the counts. */
import type { Context } from 'koa';
import { requestContext } from '../context.ts';
import { grpcKindOf } from '../grpc/content-type.ts';
import { grpcStatus } from '../grpc/status.ts';
import { finalStatus } from './final-status.ts';

/** The status of a call whose response has closed. Undefined for any other request, or if its service sent none. */
export function finalGrpcStatus(ctx: Context): number | undefined {
  if (finalStatus(ctx.res) === 499 && grpcKindOf(ctx.req) !== undefined) return grpcStatus.CANCELLED;
  return requestContext(ctx).grpcStatus;
}
