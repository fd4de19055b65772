/** Which failures may be followed by another attempt, and after what pause. */
import type { RetryPolicy } from '#config';
import { failureOf } from './failures.ts';

export interface RetryRules {
  /** Beside the first attempt. */
  readonly retriesMax: number;
  /** Until the response headers of one attempt, in milliseconds; undefined: what is left of the whole. */
  readonly perTryTimeoutMs: number | undefined;
  readonly isRetriableStatus: (status: number) => boolean;
  /** Of an attempt that failed before there were response headers. */
  readonly isRetriableFailure: (cause: unknown) => boolean;
}

/** What the client may send twice and mean once (RFC 9110 section 9.2.2). */
const idempotent = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE', 'PUT', 'DELETE']);

export function isIdempotent(method: string): boolean {
  return idempotent.has(method);
}

/**
 * Envoy's conditions, but for one: what it refuses to an HTTP/2 stream (`refused-stream`) does not happen in HTTP/1.1. No
 * answer at all counts as one of the 5xx that it ends as.
 */
export function createRetryRules(policy: RetryPolicy | undefined): RetryRules {
  const on = new Set(policy?.retryOn);
  const codes = new Set(on.has('retriable-status-codes') ? policy?.statusCodes : []);
  if (on.has('gateway-error')) for (const status of [502, 503, 504]) codes.add(status);
  if (on.has('retriable-4xx')) codes.add(409);
  const isBroad = on.has('5xx') || on.has('gateway-error') || on.has('reset');
  return Object.freeze({
    retriesMax: policy?.numRetries ?? 0,
    perTryTimeoutMs: policy?.perTryTimeoutMs,
    isRetriableStatus: (status: number) => codes.has(status) || (status >= 500 && on.has('5xx')),
    isRetriableFailure(cause: unknown) {
      const { retry } = failureOf(cause);
      if (retry === 'connect') return isBroad || on.has('connect-failure');
      return isBroad && (retry === 'reset' || retry === 'timeout');
    },
  });
}

const baseMs = 25;
const mostMs = 250;

/** Envoy's pause before the `retry`th retry, from 1 on: anything up to 25 ms, 75 ms, 175 ms, and then 250 ms. */
export function backOffMs(retry: number, random: () => number): number {
  return random() * Math.min((2 ** retry - 1) * baseMs, mostMs);
}

/** `Retry-After` in seconds (RFC 9110 section 10.2.3), as milliseconds; a date is not read, since clocks differ. */
export function retryAfterMs(value: string | undefined): number | undefined {
  return value !== undefined && /^\d{1,6}$/.test(value) ? Number(value) * 1000 : undefined;
}
