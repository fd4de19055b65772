/** The health of an address: active checks at an interval, and the detection of outliers among the responses. */
import type { Dispatcher } from 'undici';
import type { HealthCheck, OutlierDetection } from '#config';
import { createSessions } from '#http';
import type { AttemptOutcome } from '../attempt.ts';
import { timedOut } from '../failures.ts';
import { createHealthReader, healthRequest } from '../grpc/health-probe.ts';
import {
  type ConnectionOptions,
  type ConnectionParts,
  createConnector,
  loadUndici,
  type PooledRequest,
  withServerName,
} from './pool.ts';

type ProbedAddress = Pick<ConnectionOptions, 'origin' | 'serverName' | 'tls' | 'http2' | 'machineGuard'>;

/** Calls `run` once after `delayMs`. Returns a function that cancels it. */
export type Timer = (run: () => void, delayMs: number) => () => void;

export type Health = 'unknown' | 'healthy' | 'unhealthy';

export interface HealthCheckParts extends Partial<Pick<ConnectionParts, 'headerBytesMax'>> {
  /** Returns a number from 0 up to, but not including, 1. */
  readonly random: () => number;
  readonly timer: Timer;
  /** Called when the health changes, with the outcome of the last check. */
  readonly onChange: (health: Health, outcome: AttemptOutcome) => void;
  /** Called after each check that a healthy address passes. */
  readonly onPass: () => void;
}

/**
 * Checks the address until the returned function is called. The first check runs at a random time within one interval,
 * so that the checks of many addresses do not come in bursts.
 */
export function watchHealth(
  address: ProbedAddress,
  check: HealthCheck,
  { random, timer, headerBytesMax, onChange, onPass }: HealthCheckParts,
): () => void {
  const probe = createProbe(address, check, { timer, headerBytesMax, random });
  let health: Health = 'unknown';
  let streak = 0;
  let cancelProbe = () => {};
  let cancelTimer = timer(runCheck, random() * check.intervalMs);

  function runCheck(): void {
    cancelProbe = probe(onResult);
  }

  function onResult(outcome: AttemptOutcome): void {
    cancelTimer = timer(runCheck, check.intervalMs);
    const next = healthAfter(outcome);
    if (next !== health) {
      health = next;
      onChange(health, outcome);
    }
    if (health === 'healthy' && isExpected(check, outcome)) onPass();
  }

  function healthAfter(outcome: AttemptOutcome): Health {
    const found = isExpected(check, outcome) ? 'healthy' : 'unhealthy';
    streak = health === found ? 0 : streak + 1;
    if (streak < thresholdFor(check, health, outcome)) return health;
    streak = 0;
    return found;
  }

  return () => {
    cancelTimer();
    cancelProbe();
  };
}

/** How many consecutive results change the health. As in Envoy, the first success is enough, and so is any 503. */
function thresholdFor(check: HealthCheck, health: Health, outcome: AttemptOutcome): number {
  if (isExpected(check, outcome)) return health === 'unknown' ? 1 : check.healthyThreshold;
  return outcome.kind === 'responded' && outcome.status === 503 ? 1 : check.unhealthyThreshold;
}

function isExpected({ expectedStatuses }: HealthCheck, outcome: AttemptOutcome): boolean {
  return (
    outcome.kind === 'responded' &&
    expectedStatuses.some(({ min, max }) => min <= outcome.status && outcome.status <= max)
  );
}

/** Calls `done` once. Returns a function that cancels it. */
type Probe = (done: (outcome: AttemptOutcome) => void) => () => void;

/** Probes over a separate connection: a check that had to wait for a busy connection would fail. */
function createProbe(address: ProbedAddress, check: HealthCheck, parts: ProbeParts): Probe {
  const { grpc, hostname, path, timeoutMs } = check;
  const { timer } = parts;
  const options =
    grpc === undefined
      ? { method: 'GET' as const, path, headers: hostname === undefined ? {} : { host: hostname } }
      : healthRequest(grpc.service, path, hostname);
  const open = (address.http2 ? probeOverHttp2 : probeOverHttp1)(address, timeoutMs, parts);
  return (done) => {
    const { dispatch, destroy } = open();
    let isOver = false;
    const end = () => {
      isOver = true;
      cancel();
      destroy();
    };
    const finish = (outcome: AttemptOutcome) => {
      if (isOver) return;
      end();
      done(outcome);
    };
    const fail = (cause: unknown) => finish({ kind: 'failed', cause });
    const cancel = timer(() => fail(timedOut(`no response within ${timeoutMs} ms`)), timeoutMs);
    const reader = grpc === undefined ? createStatusReader(finish) : createHealthReader(finish);
    dispatch(options, { ...reader, onResponseError: (_controller, cause) => fail(cause) });
    return end;
  };
}

function createStatusReader(
  finish: (outcome: AttemptOutcome) => void,
): Omit<Dispatcher.DispatchHandler, 'onResponseError'> {
  return {
    onRequestStart() {},
    onResponseStart(_controller, status) {
      if (status >= 200) finish({ kind: 'responded', status });
    },
    onResponseData() {},
    onResponseEnd() {},
  };
}

type ProbeParts = Pick<HealthCheckParts, 'timer' | 'headerBytesMax' | 'random'>;

/** Opens a connection for a single request. */
type OpenProbe = () => {
  readonly dispatch: (options: PooledRequest['options'], handler: PooledRequest['handler']) => void;
  readonly destroy: () => void;
};

function probeOverHttp1(
  address: ProbedAddress,
  connectTimeoutMs: number,
  { headerBytesMax: maxHeaderSize }: ProbeParts,
): OpenProbe {
  const { connect, serverName } = createConnector({ ...address, connectTimeoutMs });
  return () => {
    const client = new (loadUndici().Client)(address.origin, {
      connect,
      pipelining: 0,
      headersTimeout: 0,
      bodyTimeout: 0,
      ...(maxHeaderSize && { maxHeaderSize }),
    });
    return {
      dispatch: (options, handler) => void client.dispatch(withServerName(options, serverName), handler),
      destroy: () => void client.destroy(),
    };
  };
}

function probeOverHttp2(
  address: ProbedAddress,
  connectTimeoutMs: number,
  { timer, random, headerBytesMax }: ProbeParts,
): OpenProbe {
  const clock = () => performance.now();
  return () => {
    const sessions = createSessions({ ...address, connectTimeoutMs }, 1, { clock, random, timer, headerBytesMax });
    return {
      dispatch: (options, handler) =>
        sessions.run({ options, handler, isFresh: false, connection: undefined, openSocket: 0 }),
      destroy: sessions.destroy,
    };
  };
}

/** The outlier state of one address. */
export interface OutlierState {
  /** Consecutive failures before a response, or as its status. */
  failures: number;
  /** Consecutive bodies that broke off. Counted separately, because each of them follows the head of a success. */
  brokenBodies: number;
  /** The number of ejections, minus one for each base ejection time that has passed without one. */
  ejections: number;
  /** In the past unless the address is ejected. */
  ejectedUntilMs: number;
  /** True from an ejection until the address is known to work again. */
  isSuspect: boolean;
}

/** The longest ejection. Like Envoy, we give every address another chance after five minutes. */
const ejectionMsMax = 300_000;

export function createOutlierState(): OutlierState {
  return { failures: 0, brokenBodies: 0, ejections: 0, ejectedUntilMs: Number.NEGATIVE_INFINITY, isSuspect: false };
}

export function isEjected({ ejectedUntilMs }: OutlierState, nowMs: number): boolean {
  return nowMs < ejectedUntilMs;
}

/** Ends the ejection early, if there is one, because the address is healthy. The next is longer all the same. */
export function endEjection(address: OutlierState, nowMs: number): boolean {
  if (!isEjected(address, nowMs)) return false;
  address.ejectedUntilMs = nowMs;
  address.isSuspect = false;
  return true;
}

/** Call it for each success. Returns true for the first one after an ejection. */
export function recordRecovery(address: OutlierState, nowMs: number): boolean {
  if (!address.isSuspect || isEjected(address, nowMs)) return false;
  address.isSuspect = false;
  return true;
}

/** Records an outcome of `address`, which is one of `all`. Returns true if this ejects it. */
export function recordOutcome(
  rule: OutlierDetection,
  address: OutlierState,
  all: readonly OutlierState[],
  hasFailed: boolean,
  nowMs: number,
): boolean {
  if (isEjected(address, nowMs)) return false;
  address.failures = hasFailed ? address.failures + 1 : 0;
  return ejectBeyond(rule, address, all, address.failures, nowMs);
}

/** Records a body that `address`, which is one of `all`, broke off. Returns true if this ejects it. */
export function recordBrokenBody(
  rule: OutlierDetection,
  address: OutlierState,
  all: readonly OutlierState[],
  nowMs: number,
): boolean {
  if (isEjected(address, nowMs)) return false;
  address.brokenBodies += 1;
  return ejectBeyond(rule, address, all, address.brokenBodies, nowMs);
}

function ejectBeyond(
  rule: OutlierDetection,
  address: OutlierState,
  all: readonly OutlierState[],
  failures: number,
  nowMs: number,
): boolean {
  if (rule.consecutive5xx === 0 || failures < rule.consecutive5xx) return false;
  const ejected = all.filter((one) => isEjected(one, nowMs)).length;
  if (ejected >= ejectionsMax(rule, all.length)) return false;
  eject(rule, address, nowMs);
  return true;
}

/** At least one, unless ejection is disabled, and never all addresses. */
function ejectionsMax({ maxEjectionPercent }: OutlierDetection, addresses: number): number {
  if (maxEjectionPercent === 0) return 0;
  return Math.min(addresses - 1, Math.max(1, Math.floor((addresses * maxEjectionPercent) / 100)));
}

function eject({ baseEjectionTimeMs }: OutlierDetection, address: OutlierState, nowMs: number): void {
  const sinceMs = nowMs - address.ejectedUntilMs;
  address.ejections = Math.max(0, address.ejections - Math.floor(sinceMs / baseEjectionTimeMs)) + 1;
  address.failures = 0;
  address.brokenBodies = 0;
  address.isSuspect = true;
  const longestMs = Math.max(ejectionMsMax, baseEjectionTimeMs);
  address.ejectedUntilMs = nowMs + Math.min(longestMs, baseEjectionTimeMs * address.ejections);
}
