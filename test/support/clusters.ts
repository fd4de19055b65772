/** Helpers for tests of clusters: short specs, one exchange as one promise, and a manual clock. */
import type { Dispatcher } from 'undici';
import { type HealthCheck, mappingDefaults } from '#config';
import type { Attempt, Cluster, ClusterSpec, Timer } from '#proxy';

type Origins = readonly string[] | (() => readonly string[]);

/** The defaults of a Mapping, overridden by `fields`. */
export function specOf(origins: Origins, fields: Partial<ClusterSpec> = {}): ClusterSpec {
  const { circuitBreakers, healthCheck, outlierDetection, loadBalancer } = mappingDefaults;
  return {
    service: 'hotel',
    origins: typeof origins === 'function' ? origins : () => origins,
    connectTimeoutMs: 3000,
    circuitBreakers,
    healthCheck,
    outlierDetection,
    loadBalancer,
    ...fields,
  };
}

export function breakersOf(fields: Partial<ClusterSpec['circuitBreakers']>): ClusterSpec['circuitBreakers'] {
  return { ...mappingDefaults.circuitBreakers, ...fields };
}

/** Checks every second with a time-out of 300 ms; two equal results in a row change an address's health. */
export function healthCheckOf(fields: Partial<HealthCheck> = {}): HealthCheck {
  return {
    grpc: undefined,
    path: '/health',
    hostname: undefined,
    timeoutMs: 300,
    intervalMs: 1000,
    unhealthyThreshold: 2,
    healthyThreshold: 2,
    expectedStatuses: [{ min: 200, max: 299 }],
    ...fields,
  };
}

export interface ExchangeResult {
  readonly status: number;
  readonly body: string;
  readonly isReused: boolean;
  readonly origin: string;
}

/** Makes one attempt, reports its outcome, and releases its place after the body. Rejects with the attempt's error. */
export async function ask(
  cluster: Cluster,
  options: Partial<Dispatcher.DispatchOptions> = {},
  tried?: readonly string[],
): Promise<ExchangeResult> {
  const attempt = cluster.attempt(tried);
  return exchangeOn(attempt, options).finally(() => attempt.release());
}

export function exchangeOn(
  attempt: Attempt,
  options: Partial<Dispatcher.DispatchOptions> = {},
  isFresh?: boolean,
): Promise<ExchangeResult> {
  const chunks: Buffer[] = [];
  let status = 0;
  return new Promise((resolve, reject) => {
    attempt.dispatch(
      { method: 'GET', path: '/', ...options },
      {
        onRequestStart() {},
        onResponseStart(_controller, statusCode) {
          status = statusCode;
          attempt.reportOutcome({ kind: 'responded', status });
        },
        onResponseData: (_controller, chunk) => void chunks.push(chunk),
        onResponseEnd() {
          attempt.reportBody();
          const body = Buffer.concat(chunks).toString();
          resolve({ status, body, isReused: attempt.isReused(), origin: attempt.origin });
        },
        onResponseError(_controller, cause) {
          if (status === 0) attempt.reportOutcome({ kind: 'failed', cause });
          else attempt.reportBody(cause);
          reject(Object.assign(cause, { isReused: attempt.isReused() }));
        },
      },
      isFresh,
    );
  });
}

export interface ManualTime {
  readonly clock: () => number;
  readonly timer: Timer;
  /** Moves the clock and runs the timers that become due, in order. */
  readonly advance: (ms: number) => void;
  /** The number of timers that are set. */
  readonly pending: () => number;
}

export function createManualTime(): ManualTime {
  const timers = new Set<{ readonly atMs: number; readonly run: () => void }>();
  let nowMs = 0;

  function due(untilMs: number) {
    return [...timers].filter(({ atMs }) => atMs <= untilMs).sort((one, other) => one.atMs - other.atMs)[0];
  }

  return {
    clock: () => nowMs,
    timer(run, delayMs) {
      const one = { atMs: nowMs + delayMs, run };
      timers.add(one);
      return () => void timers.delete(one);
    },
    advance(ms) {
      const untilMs = nowMs + ms;
      for (let next = due(untilMs); next !== undefined; next = due(untilMs)) {
        timers.delete(next);
        nowMs = next.atMs;
        next.run();
      }
      nowMs = untilMs;
    },
    pending: () => timers.size,
  };
}
