/** Outlier detection: ejects an address after several consecutive failures, for longer each time. */
import type { OutlierDetection } from '#config';

/** The outlier state of one address. */
export interface OutlierState {
  /** Consecutive failures. */
  failures: number;
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
  return { failures: 0, ejections: 0, ejectedUntilMs: Number.NEGATIVE_INFINITY, isSuspect: false };
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
  if (rule.consecutive5xx === 0 || address.failures < rule.consecutive5xx) return false;
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
  address.isSuspect = true;
  const longestMs = Math.max(ejectionMsMax, baseEjectionTimeMs);
  address.ejectedUntilMs = nowMs + Math.min(longestMs, baseEjectionTimeMs * address.ejections);
}
