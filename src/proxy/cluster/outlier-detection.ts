/** Addresses that fail several times in a row are ejected for a while, longer each time. */
import type { OutlierDetection } from '#config';

/** Of one address. */
export interface OutlierState {
  /** In a row. */
  failures: number;
  /** Ejections, less one for each base time without one. */
  ejections: number;
  /** On the clock; in the past when it is not ejected. */
  ejectedUntilMs: number;
}

/** As Envoy has it: however often an address has failed, it gets another chance after five minutes. */
const ejectionMsMax = 300_000;

export function createOutlierState(): OutlierState {
  return { failures: 0, ejections: 0, ejectedUntilMs: Number.NEGATIVE_INFINITY };
}

export function isEjected({ ejectedUntilMs }: OutlierState, nowMs: number): boolean {
  return nowMs < ejectedUntilMs;
}

/** The address has shown that it is well. Another ejection soon after lasts longer all the same. */
export function endEjection(address: OutlierState, nowMs: number): void {
  if (isEjected(address, nowMs)) address.ejectedUntilMs = nowMs;
}

/** Counts one outcome of `address`, one of `all`; true when it is ejected for that. */
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

/** At least one where ejecting is allowed at all, and never the last address. */
function ejectionsMax({ maxEjectionPercent }: OutlierDetection, addresses: number): number {
  if (maxEjectionPercent === 0) return 0;
  return Math.min(addresses - 1, Math.max(1, Math.floor((addresses * maxEjectionPercent) / 100)));
}

function eject({ baseEjectionTimeMs }: OutlierDetection, address: OutlierState, nowMs: number): void {
  const sinceMs = nowMs - address.ejectedUntilMs;
  address.ejections = Math.max(0, address.ejections - Math.floor(sinceMs / baseEjectionTimeMs)) + 1;
  address.failures = 0;
  const longestMs = Math.max(ejectionMsMax, baseEjectionTimeMs);
  address.ejectedUntilMs = nowMs + Math.min(longestMs, baseEjectionTimeMs * address.ejections);
}
