/** Positive decisions of an auth service, kept for a short while and bounded in number. */
import { createHash } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import type { AuthDecision } from '#auth';
import { withoutNames } from '#proxy';
import type { CheckRequest } from './check-request.ts';

export interface AuthCache {
  /** The decision about exactly this request, while it is valid. */
  readonly recall: (request: CheckRequest) => AuthDecision | undefined;
  readonly remember: (request: CheckRequest, decision: AuthDecision) => void;
}

export interface AuthCacheOptions {
  /** How long a decision is valid, in milliseconds. */
  readonly ttlMs: number;
  /** When there are more, the least recently used decision is dropped. @default 10_000 */
  readonly entriesMax?: number;
  /** Monotonic milliseconds. @default performance.now */
  readonly clock?: () => number;
}

interface Entry {
  readonly decision: AuthDecision;
  readonly expiresAt: number;
}

/** For one AuthService: another one may decide differently about the same request. */
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
    remember(request: CheckRequest, decision: AuthDecision) {
      const key = keyOf(request);
      entries.delete(key);
      entries.set(key, { decision, expiresAt: clock() + ttlMs });
      for (const oldest of entries.keys()) {
        if (entries.size <= entriesMax) return;
        entries.delete(oldest);
      }
    },
  });
}

/**
 * A digest of everything that is sent but the request's ids: the decision can depend on method, path, address and any
 * header. Credentials are not kept in clear text.
 */
function keyOf({ method, path, headers }: CheckRequest): string {
  const relevant = withoutNames(headers, ids);
  return createHash('sha256')
    .update(JSON.stringify([method, path, relevant]))
    .digest('base64');
}

const ids: ReadonlySet<string> = new Set(['x-request-id', 'traceparent', 'tracestate']);

/** Not a response that sets a cookie or forbids caching. */
export function mayBeCached(headers: IncomingHttpHeaders): boolean {
  if (headers['set-cookie'] !== undefined) return false;
  return !/\b(?:no-store|no-cache|max-age=0)\b/i.test(String(headers['cache-control'] ?? ''));
}
