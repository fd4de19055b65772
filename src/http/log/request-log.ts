/** Log lines about a request, which begin with its ids. */
import type { Context } from 'koa';
import type { Logger } from '#foundation';
import { requestContext, traceOf } from '../context.ts';

/** The leading fields of every log line about a request, which tie its lines together. */
export function requestLogFields(ctx: Context) {
  return { requestId: requestContext(ctx).requestId, traceId: traceOf(ctx).traceId };
}

/** Skips building the line when the level is off. */
export function logRequest(
  logger: Logger,
  level: 'warn' | 'error',
  ctx: Context,
  fields: object,
  message: string,
): void {
  if (logger.isLevelEnabled?.(level) !== false) logger[level]({ ...requestLogFields(ctx), ...fields }, message);
}
