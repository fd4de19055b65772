/** Lines of the log that speak of one request, so that all that was said of it can be found. */
import type { Context } from 'koa';
import { exchangeOf } from './exchange.ts';
import type { Logger } from './logger.ts';
import { traceOf } from './trace.ts';

export interface RequestLogFields {
  readonly requestId: string;
  readonly traceId: string;
}

/** What each of them begins with. */
export function logFieldsOf(ctx: Context): RequestLogFields {
  return { requestId: exchangeOf(ctx).requestId, traceId: traceOf(ctx).traceId };
}

/** Of a level that is off nothing is worked out. */
export function logRequest(
  logger: Logger,
  level: 'warn' | 'error',
  ctx: Context,
  fields: object,
  message: string,
): void {
  if (logger.isLevelEnabled?.(level) !== false) logger[level]({ ...logFieldsOf(ctx), ...fields }, message);
}
