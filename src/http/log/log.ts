/** The logger interface, loggers that wrap another one, log fields of a request, and rate-limited logging. */
import type { Context } from 'koa';
import { requestContext, traceOf } from '../context.ts';

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

/**
 * A line that the logger fails to write must not break a request or the process. If the logger throws, for example
 * because a field cannot be serialised, the message is logged again with only the reason. If that fails too, the line is
 * lost.
 */
export function createSafeLogger(logger: CountingLogger): CountingLogger {
  const { debug, isLevelEnabled, droppedLines, infoPlain, writeLine } = logger;
  // Looks the methods up for every line, because pino replaces them when its level changes.
  return Object.freeze({
    info: safe((fields, message) => logger.info(fields, message)),
    warn: safe((fields, message) => logger.warn(fields, message)),
    error: safe((fields, message) => logger.error(fields, message)),
    ...(debug && { debug: safe((fields, message) => logger.debug?.(fields, message)) }),
    ...(isLevelEnabled && { isLevelEnabled: isLevelEnabled.bind(logger) }),
    ...(droppedLines && { droppedLines: droppedLines.bind(logger) }),
    ...(infoPlain && { infoPlain: safe(infoPlain.bind(logger)) }),
    ...(writeLine && { writeLine: writeLine.bind(logger) }),
  });
}

/** Handles the rejections of an asynchronous logger too, because nothing else would. */
function safe(write: (...line: Parameters<LogLine>) => unknown): LogLine {
  function writeReason(thrown: unknown, message?: string): void {
    const loggerFailed = thrown instanceof Error ? thrown.message : typeof thrown;
    try {
      const written = write({ loggerFailed }, message);
      if (written instanceof Promise) written.catch(() => {});
    } catch {}
  }

  return (fields, message) => {
    try {
      const written = write(fields, message);
      if (written instanceof Promise) written.catch((thrown) => writeReason(thrown, message));
    } catch (thrown) {
      writeReason(thrown, message);
    }
  };
}

const levels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'];

/** Restricts a logger to a level and those above it. The functions of `logger` must not need `this`. */
export function fromLevel(logger: CountingLogger, lowest: string): CountingLogger {
  const isOn = (level: string) => levels.indexOf(level) >= levels.indexOf(lowest);
  const { info, warn, error, debug, infoPlain, writeLine, ...rest } = logger;
  return Object.freeze({
    ...rest,
    info: isOn('info') ? info : ignore,
    warn: isOn('warn') ? warn : ignore,
    error: isOn('error') ? error : ignore,
    ...(debug && isOn('debug') && { debug }),
    ...(infoPlain && isOn('info') && { infoPlain }),
    ...(writeLine && isOn('info') && { writeLine }),
    isLevelEnabled: (level: string) => isOn(level) && logger.isLevelEnabled?.(level) !== false,
  });
}

function ignore(): void {}

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
  /** The message when the outage has ended: `orders is responding again`. */
  readonly ended: string;
  /** Milliseconds from any fixed point. @default performance.now */
  readonly clock?: () => number;
}

export interface OutageLog {
  /**
   * Call it for a failed request. `fields` and `message` go into the first line and, with counts, into later ones. The
   * cause is `err` or `reason` of the fields.
   */
  readonly failed: (fields: object, message: string) => void;
  /** Call it for a request that succeeded. */
  readonly answered: () => void;
}

/** A success this long after the last failure ends an outage. With less, an intermittent fault would log every time. */
const recoveryMs = 5_000;

/** The most lines in a minute of an outage, because causes may differ in what a client has sent. */
const causesMax = 8;

/**
 * Logs the outages of one upstream: each cause at once, and then once a minute. Counts and durations cover the current
 * outage so far.
 */
export function createOutageLog({ logger, ended, clock = () => performance.now() }: OutageLogOptions): OutageLog {
  let failures = 0;
  let [beganMs, failedMs, minuteMs] = [0, 0, 0];
  const logged = new Set<string>();

  function isDue(nowMs: number, cause: string): boolean {
    if (failures === 1 || nowMs - minuteMs >= intervalMs) {
      minuteMs = nowMs;
      logged.clear();
    }
    if (logged.has(cause) || logged.size >= causesMax) return false;
    logged.add(cause);
    return true;
  }

  return Object.freeze({
    failed(fields: object, message: string) {
      const nowMs = clock();
      failures += 1;
      failedMs = nowMs;
      if (failures === 1) beganMs = nowMs;
      if (!isDue(nowMs, causeOf(fields, message))) return;
      logger.warn(failures === 1 ? fields : { ...fields, failures, forMs: Math.round(nowMs - beganMs) }, message);
    },
    answered() {
      if (failures === 0 || clock() - failedMs < recoveryMs) return;
      logger.info({ failures, forMs: Math.round(failedMs - beganMs) }, ended);
      failures = 0;
    },
  });
}

/** Names the cause by its innermost error, because the outer ones say what did not happen. Numbers make no new cause. */
function causeOf(fields: { readonly err?: unknown; readonly reason?: unknown }, message: string): string {
  let error = fields.err ?? fields.reason;
  while (error instanceof Error && error.cause !== undefined) error = error.cause;
  return `${message} ${error instanceof Error ? error.message : error}`.replace(/\d+/g, '#');
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
