/** The logger's interface, log lines about a request, and outages in a few lines. */
import type { ServerResponse } from 'node:http';
import type { Context } from 'koa';
import { requestContext, traceOf } from '../context.ts';
import { sentStatusOf } from '../server/client-errors.ts';
import { upgradeOf } from '../server/upgrades.ts';

/** The shape of pino's, so that a host can pass in its own. */
export interface Logger {
  readonly info: LogLine;
  readonly warn: LogLine;
  readonly error: LogLine;
  /** Absent: nothing is logged at that level. */
  readonly debug?: LogLine;
  /** Absent: every level is on. */
  readonly isLevelEnabled?: (level: string) => boolean;
  /** As `info`, for fields that are plain strings, numbers and booleans, and cheaper; for the access log. Absent: `info` does. */
  readonly infoPlain?: LogLine;
  /** Takes a line that is not JSON, as it is, for the access log. Absent: the text is the message of a line at info. */
  readonly writeLine?: (line: string) => void;
}

/** As the command line has it. Apart: TypeScript infers levels of pino from the names in the type that a host's logger must have. */
export interface CountingLogger extends Logger {
  /** How many lines it could not write. Absent: none. */
  readonly droppedLines?: () => number;
}

export type LogLine = (fields: object, message?: string) => void;

export const silentLogger: Logger = Object.freeze({
  info() {},
  warn() {},
  error() {},
  isLevelEnabled: () => false,
});

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

const everyMs = 60_000;

/** For a line that may be due very often: true when it is due for the first time, and then at most once a minute. */
export function createOncePerMinute(clock = () => performance.now()): () => boolean {
  let silentUntilMs = Number.NEGATIVE_INFINITY;
  return () => {
    const nowMs = clock();
    if (nowMs < silentUntilMs) return false;
    silentUntilMs = nowMs + everyMs;
    return true;
  };
}

export interface OutageLogOptions {
  readonly logger: Pick<Logger, 'info' | 'warn'>;
  /** Of the line when it has ended: `the auth service answers again`. */
  readonly ended: string;
  /** Milliseconds from any fixed point. @default performance.now */
  readonly clock?: () => number;
}

export interface OutageLog {
  /** A request that met the outage. `fields` and `message` are those of the first line and, with counts, of each later one. */
  readonly failed: (fields: object, message: string) => void;
  /** A request that did not. */
  readonly answered: () => void;
}

/** An answer so long after the last failure ends an outage. Sooner, one that comes and goes would log each time. */
const calmMs = 5_000;

/** Of one upstream. Counts and times are those of the outage so far. */
export function createOutageLog({ logger, ended, clock = () => performance.now() }: OutageLogOptions): OutageLog {
  let failures = 0;
  let [beganMs, failedMs, loggedMs] = [0, 0, 0];

  return Object.freeze({
    failed(fields: object, message: string) {
      const nowMs = clock();
      failures += 1;
      failedMs = nowMs;
      if (failures > 1 && nowMs - loggedMs < everyMs) return;
      if (failures === 1) beganMs = nowMs;
      loggedMs = nowMs;
      logger.warn(failures === 1 ? fields : { ...fields, failures, forMs: Math.round(nowMs - beganMs) }, message);
    },
    answered() {
      if (failures === 0 || clock() - failedMs < calmMs) return;
      logger.info({ failures, forMs: Math.round(failedMs - beganMs) }, ended);
      failures = 0;
    },
  });
}

/** Outage logs by upstream, for gateways that follow one another: an outage is the same after a reload. */
export interface OutageRegistry {
  /** All holders share one log, which is forgotten when all have released it. */
  readonly acquire: (upstream: string, ended: string) => { readonly log: OutageLog; readonly release: () => void };
}

export function createOutageRegistry(options: Omit<OutageLogOptions, 'ended'>): OutageRegistry {
  const held = new Map<string, { readonly log: OutageLog; holders: number }>();
  return Object.freeze({
    acquire(upstream: string, ended: string) {
      const known = held.get(upstream) ?? { log: createOutageLog({ ...options, ended }), holders: 0 };
      known.holders += 1;
      held.set(upstream, known);
      return {
        log: known.log,
        release() {
          known.holders -= 1;
          if (known.holders === 0) held.delete(upstream);
        },
      };
    },
  });
}

/**
 * An outage log for each upstream, made when it first fails. Services of this process share the logs of what they
 * depend on, such as the database.
 */
export interface OutageLogs {
  /** A request to the service met an outage, of `upstream`. A service is undefined where the server itself answers. */
  readonly failed: (service: string | undefined, upstream: string, fields: object, message: string) => void;
  readonly answered: (service: string | undefined) => void;
  /** Forgets all other services. */
  readonly keepOnly: (services: ReadonlySet<string>) => void;
}

export function createOutageLogs(options: Omit<OutageLogOptions, 'ended'>): OutageLogs {
  const ofUpstreams = new Map<string, OutageLog>();
  const ofServices = new Map<string | undefined, OutageLog>();

  function logOf(upstream: string): OutageLog {
    const log = ofUpstreams.get(upstream) ?? createOutageLog({ ...options, ended: `${upstream} answers again` });
    ofUpstreams.set(upstream, log);
    return log;
  }

  return Object.freeze({
    failed(service: string | undefined, upstream: string, fields: object, message: string) {
      const log = logOf(upstream);
      ofServices.set(service, log);
      log.failed(fields, message);
    },
    answered(service: string | undefined) {
      if (ofServices.size > 0) ofServices.get(service)?.answered();
    },
    keepOnly(services: ReadonlySet<string>) {
      for (const service of ofServices.keys())
        if (service !== undefined && !services.has(service)) ofServices.delete(service);
      const kept = new Set(ofServices.values());
      for (const [upstream, log] of ofUpstreams) if (!kept.has(log)) ofUpstreams.delete(upstream);
    },
  });
}
