/** The logger interface, log fields of a request, and rate-limited logging of outages. */
import type { ServerResponse } from 'node:http';
import type { Context } from 'koa';
import { requestContext, traceOf } from '../context.ts';
import { sentStatusOf } from '../server/client-errors.ts';
import { upgradeOf } from '../server/upgrades.ts';

/** A subset of pino's interface, so that a host application can pass in its own logger. */
export interface Logger {
  readonly info: LogLine;
  readonly warn: LogLine;
  readonly error: LogLine;
  /** Without it, nothing is logged at this level. */
  readonly debug?: LogLine;
  /** Without it, every level counts as enabled. */
  readonly isLevelEnabled?: (level: string) => boolean;
  /** A faster `info` for plain strings, numbers and booleans, used by the access log. Without it, `info` is used. */
  readonly infoPlain?: LogLine;
  /** Writes a line as it is instead of as JSON, for the access log. Without it, `info` logs the line as a message. */
  readonly writeLine?: (line: string) => void;
}

/**
 * The logger of the command line. Separate from `Logger`: for `createFrontdesk({ logger: pino() })`, TypeScript infers
 * pino's custom levels from the members of `Logger`, and `droppedLines` cannot be a level.
 */
export interface CountingLogger extends Logger {
  /** The number of lines that could not be written. Without it, none are lost. */
  readonly droppedLines?: () => number;
}

export type LogLine = (fields: object, message?: string) => void;

export const silentLogger: Logger = Object.freeze({
  info() {},
  warn() {},
  error() {},
  isLevelEnabled: () => false,
});

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

/** The status of a closed response, or 499 if the client disconnected before the system had taken all of it. */
export function finalStatus(res: ServerResponse): number {
  const sent = sentStatusOf(res);
  if (sent !== undefined) return sent;
  // Node counts data as written even if it was still buffered when the connection was destroyed. An upgraded connection
  // always ends by being destroyed.
  const isCutOff = res.req.socket.destroyed && upgradeOf(res.req) === undefined;
  return res.writableFinished && !isCutOff ? res.statusCode : 499;
}

const intervalMs = 60_000;

/** Throttles a frequent log line. Returns true on the first call, and then at most once a minute. */
export function createOncePerMinute(clock = () => performance.now()): () => boolean {
  let silentUntilMs = Number.NEGATIVE_INFINITY;
  return () => {
    const nowMs = clock();
    if (nowMs < silentUntilMs) return false;
    silentUntilMs = nowMs + intervalMs;
    return true;
  };
}

export interface OutageLogOptions {
  readonly logger: Pick<Logger, 'info' | 'warn'>;
  /** The message when the outage has ended: `hotel is responding again`. */
  readonly ended: string;
  /** Milliseconds from any fixed point. @default performance.now */
  readonly clock?: () => number;
}

export interface OutageLog {
  /** Call it for a failed request. `fields` and `message` go into the first line and, with counts, into later ones. */
  readonly failed: (fields: object, message: string) => void;
  /** Call it for a request that succeeded. */
  readonly answered: () => void;
}

/** A success this long after the last failure ends an outage. With less, an intermittent fault would log every time. */
const recoveryMs = 5_000;

/** Logs the outages of one upstream. Counts and durations cover the current outage so far. */
export function createOutageLog({ logger, ended, clock = () => performance.now() }: OutageLogOptions): OutageLog {
  let failures = 0;
  let [beganMs, failedMs, loggedMs] = [0, 0, 0];

  return Object.freeze({
    failed(fields: object, message: string) {
      const nowMs = clock();
      failures += 1;
      failedMs = nowMs;
      if (failures > 1 && nowMs - loggedMs < intervalMs) return;
      if (failures === 1) beganMs = nowMs;
      loggedMs = nowMs;
      logger.warn(failures === 1 ? fields : { ...fields, failures, forMs: Math.round(nowMs - beganMs) }, message);
    },
    answered() {
      if (failures === 0 || clock() - failedMs < recoveryMs) return;
      logger.info({ failures, forMs: Math.round(failedMs - beganMs) }, ended);
      failures = 0;
    },
  });
}

/**
 * One outage log per upstream, created on its first failure. In-process services share the log of an upstream that they
 * depend on, such as the database.
 */
export interface OutageLogs {
  /** Call it when a request to `service` (undefined for the server's own pages) failed because of `upstream`. */
  readonly failed: (service: string | undefined, upstream: string, fields: object, message: string) => void;
  /** Call it when a request to `service` succeeded. */
  readonly answered: (service: string | undefined) => void;
  /** Drops the logs of all other services. */
  readonly keepOnly: (services: ReadonlySet<string>) => void;
}

export function createOutageLogs(options: Omit<OutageLogOptions, 'ended'>): OutageLogs {
  const byUpstream = new Map<string, OutageLog>();
  const byService = new Map<string | undefined, OutageLog>();

  function logOf(upstream: string): OutageLog {
    const log = byUpstream.get(upstream) ?? createOutageLog({ ...options, ended: `${upstream} is responding again` });
    byUpstream.set(upstream, log);
    return log;
  }

  return Object.freeze({
    failed(service: string | undefined, upstream: string, fields: object, message: string) {
      const log = logOf(upstream);
      byService.set(service, log);
      log.failed(fields, message);
    },
    answered(service: string | undefined) {
      if (byService.size > 0) byService.get(service)?.answered();
    },
    keepOnly(services: ReadonlySet<string>) {
      for (const service of byService.keys())
        if (service !== undefined && !services.has(service)) byService.delete(service);
      const kept = new Set(byService.values());
      for (const [upstream, log] of byUpstream) if (!kept.has(log)) byUpstream.delete(upstream);
    },
  });
}
