/** Addresses that fail several times in a row are left out for a while. */
import type { OutlierDetection } from '#config';

/** The record of one address. */
export interface Conduct {
  /** Failures in a row. */
  failures: number;
  /** Ejections, less one for each base time that it has stood since. */
  ejections: number;
  /** On the clock; the past: it is in. */
  ejectedUntilMs: number;
}

/** Envoy's: however often an address has failed, it gets another chance after five minutes. */
const ejectionMsMax = 300_000;

export function newConduct(): Conduct {
  return { failures: 0, ejections: 0, ejectedUntilMs: Number.NEGATIVE_INFINITY };
}

export function isEjected({ ejectedUntilMs }: Conduct, nowMs: number): boolean {
  return nowMs < ejectedUntilMs;
}

/** Counts one outcome of `address`, one of `all`; true when that was one failure too many, and it is ejected. */
export function judge(
  rule: OutlierDetection,
  address: Conduct,
  all: readonly Conduct[],
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

/** One may go if any may, and one stays whatever the percentage says. */
function ejectionsMax({ maxEjectionPercent }: OutlierDetection, addresses: number): number {
  if (maxEjectionPercent === 0) return 0;
  return Math.min(addresses - 1, Math.max(1, Math.floor((addresses * maxEjectionPercent) / 100)));
}

function eject({ baseEjectionTimeMs }: OutlierDetection, address: Conduct, nowMs: number): void {
  const stoodMs = nowMs - address.ejectedUntilMs;
  address.ejections = Math.max(0, address.ejections - Math.floor(stoodMs / baseEjectionTimeMs)) + 1;
  address.failures = 0;
  const longestMs = Math.max(ejectionMsMax, baseEjectionTimeMs);
  address.ejectedUntilMs = nowMs + Math.min(longestMs, baseEjectionTimeMs * address.ejections);
}
