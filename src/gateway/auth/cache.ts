/** A cache of the positive decisions of an auth service. */
import { createHash } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { createBoundedMap } from '#foundation';
import { withoutNames } from '#proxy';
import type { Answer, CheckRequest } from './check-request.ts';

/** A bounded, short-lived cache of positive decisions. */
export interface AuthCache {
  /** Returns the decision for an identical request, unless it has expired. */
  readonly recall: (request: CheckRequest) => Answer | undefined;
  /** `askedAtMs`: when the service was asked. A decision that took long may already be outdated. */
  readonly remember: (request: CheckRequest, decision: Answer, askedAtMs: number) => void;
}

export interface AuthCacheOptions {
  /** How long a decision is valid from when the service was asked, in milliseconds. */
  readonly ttlMs: number;
  /** Beyond this number, the least recently used decision is evicted. @default 10_000 */
  readonly entriesMax?: number;
  /** Monotonic milliseconds. @default performance.now */
  readonly clock?: () => number;
}

interface Entry {
  readonly decision: Answer;
  readonly expiresAt: number;
}

/** Use one cache for each AuthService, because another one may decide differently about the same request. */
export function createAuthCache(options: AuthCacheOptions): AuthCache {
  const { ttlMs, entriesMax = 10_000, clock = () => performance.now() } = options;
  const entries = createBoundedMap<string, Entry>(entriesMax);
  return Object.freeze({
    recall(request: CheckRequest) {
      const key = keyOf(request);
      const entry = entries.use(key);
      if (entry !== undefined && clock() < entry.expiresAt) return entry.decision;
      entries.delete(key);
      return undefined;
    },
    remember(request: CheckRequest, decision: Answer, askedAtMs: number) {
      entries.set(keyOf(request), { decision, expiresAt: askedAtMs + ttlMs });
    },
  });
}

/**
 * Hashes everything that is sent except request ids and `Via`, because the decision may depend on the method, the path, the
 * address and any header. A hash also avoids keeping credentials in memory in clear text.
 */
function keyOf({ method, path, headers }: CheckRequest): string {
  const relevant = withoutNames(headers, irrelevant);
  return createHash('sha256')
    .update(JSON.stringify([method, path, relevant]))
    .digest('base64');
}

const irrelevant: ReadonlySet<string> = new Set(['x-request-id', 'traceparent', 'tracestate', 'via']);

/** False for a response that sets a cookie or forbids caching. */
export function mayBeCached(headers: IncomingHttpHeaders): boolean {
  if (headers['set-cookie'] !== undefined) return false;
  return !/\b(?:no-store|no-cache|max-age=0)\b/i.test(String(headers['cache-control'] ?? ''));
}
