/** A bounded, short-lived cache of an auth service's positive decisions. */
import { createHash } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import type { AuthDecision } from '#auth';
import { withoutNames } from '#proxy';
import type { CheckRequest } from './check-request.ts';

export interface AuthCache {
  /** Returns the decision for an identical request, unless it has expired. */
  readonly recall: (request: CheckRequest) => AuthDecision | undefined;
  /** `askedAtMs`: when the service was asked. A decision that took long may already be outdated. */
  readonly remember: (request: CheckRequest, decision: AuthDecision, askedAtMs: number) => void;
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
  readonly decision: AuthDecision;
  readonly expiresAt: number;
}

/** Use one cache for each AuthService, because another one may decide differently about the same request. */
export function createAuthCache(options: AuthCacheOptions): AuthCache {
  const { ttlMs, entriesMax = 10_000, clock = () => performance.now() } = options;
  const entries = new Map<string, Entry>();
  return Object.freeze({
    recall(request: CheckRequest) {
      const key = keyOf(request);
      const entry = entries.get(key);
      if (entry === undefined) return undefined;
      entries.delete(key);
      if (entry.expiresAt <= clock()) return undefined;
      entries.set(key, entry);
      return entry.decision;
    },
    remember(request: CheckRequest, decision: AuthDecision, askedAtMs: number) {
      const key = keyOf(request);
      entries.delete(key);
      entries.set(key, { decision, expiresAt: askedAtMs + ttlMs });
      for (const oldest of entries.keys()) {
        if (entries.size <= entriesMax) return;
        entries.delete(oldest);
      }
    },
  });
}

/**
 * Hashes everything that is sent except request ids, because the decision may depend on the method, the path, the
 * address and any header. A hash also avoids keeping credentials in memory in clear text.
 */
function keyOf({ method, path, headers }: CheckRequest): string {
  const relevant = withoutNames(headers, ids);
  return createHash('sha256')
    .update(JSON.stringify([method, path, relevant]))
    .digest('base64');
}

const ids: ReadonlySet<string> = new Set(['x-request-id', 'traceparent', 'tracestate']);

/** False for a response that sets a cookie or forbids caching. */
export function mayBeCached(headers: IncomingHttpHeaders): boolean {
  if (headers['set-cookie'] !== undefined) return false;
  return !/\b(?:no-store|no-cache|max-age=0)\b/i.test(String(headers['cache-control'] ?? ''));
}
