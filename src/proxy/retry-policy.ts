/** Retry policies: which failures a mapping retries, and how long to wait before each retry. */
import type { RetryPolicy } from '#config';
import { failureOf } from './failures.ts';

export interface RetryRules {
  /** The maximum number of attempts after the first. */
  readonly retriesMax: number;
  /** Milliseconds to the response headers of one attempt. Undefined if only the time-out of the whole call applies. */
  readonly perTryTimeoutMs: number | undefined;
  readonly isRetriableStatus: (status: number) => boolean;
  /** Applies to an attempt that failed before the response headers. */
  readonly isRetriableFailure: (cause: unknown) => boolean;
}

/** Methods that can safely be sent twice (RFC 9110 section 9.2.2). */
const idempotent = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE', 'PUT', 'DELETE']);

export function isIdempotent(method: string): boolean {
  return idempotent.has(method);
}

/**
 * Supports Envoy's conditions except `refused-stream`, which does not exist in HTTP/1.1. An attempt without a response
 * counts as the 5xx that the client would receive.
 */
export function createRetryRules(policy: RetryPolicy | undefined): RetryRules {
  const on = new Set(policy?.retryOn);
  const codes = new Set(on.has('retriable-status-codes') ? policy?.statusCodes : []);
  if (on.has('gateway-error')) for (const status of [502, 503, 504]) codes.add(status);
  if (on.has('retriable-4xx')) codes.add(409);
  // Each of these conditions covers any failure before a response.
  const coversNoResponse = on.has('5xx') || on.has('gateway-error') || on.has('reset');
  return Object.freeze({
    retriesMax: policy?.numRetries ?? 0,
    perTryTimeoutMs: policy?.perTryTimeoutMs,
    isRetriableStatus: (status: number) => codes.has(status) || (status >= 500 && on.has('5xx')),
    isRetriableFailure(cause: unknown) {
      const { retry } = failureOf(cause);
      if (retry === 'connect') return coversNoResponse || on.has('connect-failure');
      return coversNoResponse && (retry === 'reset' || retry === 'timeout');
    },
  });
}

const backOffBaseMs = 25;
const backOffMsMax = 250;

/** Returns a random pause before retry 1, 2, …: up to 25 ms, 75 ms, 175 ms, then 250 ms, as in Envoy. */
export function backOffMs(retry: number, random: () => number): number {
  return random() * Math.min((2 ** retry - 1) * backOffBaseMs, backOffMsMax);
}

/** Parses a `Retry-After` in seconds to milliseconds (RFC 9110 section 10.2.3). Ignores dates: clocks differ. */
export function retryAfterMs(value: string | undefined): number | undefined {
  return value !== undefined && /^\d{1,6}$/.test(value) ? Number(value) * 1000 : undefined;
}
