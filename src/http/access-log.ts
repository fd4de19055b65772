/** One line a request: who asked for what, where it went, how it ended and how long it took. */
import type { Context, Middleware, Next } from 'koa';
import { endedStatus } from './ended-status.ts';
import { exchangeOf } from './exchange.ts';
import type { Logger } from './logger.ts';
import { logFieldsOf } from './request-log.ts';
import { pathOf } from './request-target.ts';

/** The path goes without its query, which may hold secrets; a client that left before it had taken the answer reads 499. */
export function createAccessLog(logger: Logger): Middleware {
  if (logger.isLevelEnabled?.('info') === false) return (_ctx, next) => next();
  return function accessLog(ctx: Context, next: Next) {
    const exchange = exchangeOf(ctx);
    const startedAt = performance.now();
    const { req, res } = ctx;
    const path = exchange.basePath + pathOf(ctx.url);
    res.once('close', () => {
      logger.info(
        {
          ...logFieldsOf(ctx),
          user: exchange.user,
          mapping: exchange.mapping,
          method: req.method,
          path,
          status: endedStatus(res),
          durationMs: tenths(performance.now() - startedAt),
          upstreamMs: exchange.upstreamMs === undefined ? undefined : tenths(exchange.upstreamMs),
        },
        'request',
      );
    });
    return next();
  };
}

function tenths(ms: number): number {
  return Math.round(ms * 10) / 10;
}
