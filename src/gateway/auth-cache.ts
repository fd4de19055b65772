/** Positive answers of an auth service, kept for a short while: bounded in number, and known by all that was asked. */
import { createHash } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import type { AuthAnswer } from '#auth';
import type { AuthQuestion } from './auth-question.ts';

export interface AuthCache {
  /** The answer to exactly this question, as long as it holds. */
  readonly recall: (question: AuthQuestion) => AuthAnswer | undefined;
  readonly remember: (question: AuthQuestion, answer: AuthAnswer) => void;
}

export interface AuthCacheOptions {
  /** How long an answer holds, in milliseconds. */
  readonly ttlMs: number;
  /** Beyond it the answer goes that was longest not asked for. @default 10_000 */
  readonly entriesMax?: number;
  /** Milliseconds, never going back. @default performance.now */
  readonly clock?: () => number;
}

interface Entry {
  readonly answer: AuthAnswer;
  readonly expiresAt: number;
}

/** For one AuthService: two that are asked the same may answer differently. */
export function createAuthCache(options: AuthCacheOptions): AuthCache {
  const { ttlMs, entriesMax = 10_000, clock = () => performance.now() } = options;
  const entries = new Map<string, Entry>();
  return Object.freeze({
    recall(question: AuthQuestion) {
      const key = keyOf(question);
      const entry = entries.get(key);
      if (entry === undefined) return undefined;
      entries.delete(key);
      if (entry.expiresAt <= clock()) return undefined;
      entries.set(key, entry);
      return entry.answer;
    },
    remember(question: AuthQuestion, answer: AuthAnswer) {
      const key = keyOf(question);
      entries.delete(key);
      entries.set(key, { answer, expiresAt: clock() + ttlMs });
      for (const oldest of entries.keys()) {
        if (entries.size <= entriesMax) return;
        entries.delete(oldest);
      }
    },
  });
}

/**
 * Whoever may read may not write, and whoever may come from here may not from there: the answer can depend on anything
 * that the service is told, so all of it counts but the request's own ids. Of credentials only the digest is kept.
 */
function keyOf({ method, path, headers }: AuthQuestion): string {
  const told = headers.filter((_, index) => !ids.has(headers[index - (index % 2)] ?? ''));
  return createHash('sha256')
    .update(JSON.stringify([method, path, told]))
    .digest('base64');
}

const ids: ReadonlySet<string> = new Set(['x-request-id', 'traceparent', 'tracestate']);

/** An answer that gives the client something, or says not to be kept, counts once. */
export function mayBeKept(headers: IncomingHttpHeaders): boolean {
  if (headers['set-cookie'] !== undefined) return false;
  return !/\b(?:no-store|no-cache|max-age=0)\b/i.test(String(headers['cache-control'] ?? ''));
}
