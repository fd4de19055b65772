/** Rate-limited logging: a line at most once a minute, and few lines for each outage. */
import type { Logger } from './logger.ts';

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
