/** What we ask of a logger, log lines about a request, and the access log. */
import type { ServerResponse } from 'node:http';
import type { Context, Middleware, Next } from 'koa';
import { requestContext, traceOf } from './context.ts';
import { sentStatusOf } from './server/client-errors.ts';
import { upgradeOf } from './server/upgrades.ts';
import { pathOf } from './target/paths.ts';

/** The shape of pino's, so that a host can pass in its own. */
export interface Logger {
  readonly info: LogLine;
  readonly warn: LogLine;
  readonly error: LogLine;
  /** Absent: nothing is logged at that level. */
  readonly debug?: LogLine;
  /** Absent: every level is on. */
  readonly isLevelEnabled?: (level: string) => boolean;
  /** How many lines it could not write. Absent: none. */
  readonly droppedLines?: () => number;
}

type LogLine = (fields: object, message?: string) => void;

export const silentLogger: Logger = Object.freeze({
  info() {},
  warn() {},
  error() {},
  isLevelEnabled: () => false,
});

/** One line for each request: what was asked for, where it went, how it ended and how long it took. */
export function createAccessLog(logger: Logger): Middleware {
  if (logger.isLevelEnabled?.('info') === false) return (_ctx, next) => next();
  return function accessLog(ctx: Context, next: Next) {
    const context = requestContext(ctx);
    const startedAt = performance.now();
    const { req, res } = ctx;
    // Without the query, which may have secrets in it.
    const path = context.basePath + pathOf(ctx.url);
    res.once('close', () => {
      logger.info(
        {
          ...requestLogFields(ctx),
          user: context.user,
          mapping: context.mapping,
          method: req.method,
          path,
          status: endedStatus(res),
          durationMs: roundToTenths(performance.now() - startedAt),
          upstreamMs: context.upstreamMs === undefined ? undefined : roundToTenths(context.upstreamMs),
        },
        'request',
      );
    });
    return next();
  };
}

export interface RequestLogFields {
  readonly requestId: string;
  readonly traceId: string;
}

/** The first fields of each line about a request, by which all of them can be found. */
export function requestLogFields(ctx: Context): RequestLogFields {
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

/** The status of a response that has closed; 499 when its client left before the system had taken all of it. */
export function endedStatus(res: ServerResponse): number {
  const sent = sentStatusOf(res);
  if (sent !== undefined) return sent;
  // Node counts as written what still waits for a connection that was cut off. A switched connection always ends by a cut.
  const isCutOff = res.req.socket.destroyed && upgradeOf(res.req) === undefined;
  return res.writableFinished && !isCutOff ? res.statusCode : 499;
}

function roundToTenths(ms: number): number {
  return Math.round(ms * 10) / 10;
}
