/** Credentials that were right a moment ago, remembered by a keyed hash so that the next request costs no scrypt. */
import { hash } from 'node:crypto';
import type { Random } from './password-hash.ts';

export interface RememberedCredentialsOptions {
  readonly entriesMax: number;
  readonly ttlMs: number;
  /** Milliseconds from any fixed point. */
  readonly clock: () => number;
  readonly random: Random;
}

/** What was found right, by the key of the header it came in. */
export interface RememberedCredentials<T> {
  /** The key of an Authorization header: tells nothing of it, and differs from one instance to the next. */
  keyOf(authorization: string): string;
  /** What is remembered and still young enough. */
  find(key: string): T | undefined;
  /** Whether it was right once, however long ago. */
  wasRight(key: string): boolean;
  remember(key: string, value: T): void;
  forget(key: string): void;
}

/**
 * Holds at most `entriesMax` keys for `ttlMs` each; when full the one verified longest ago goes, since it is the
 * next to expire anyway, and a hit then writes nothing. Old entries stay until they are renewed or pushed out.
 */
export function createRememberedCredentials<T>(options: RememberedCredentialsOptions): RememberedCredentials<T> {
  const { entriesMax, ttlMs, clock, random } = options;
  const secret = Buffer.from(random(32)).toString('base64');
  const entries = new Map<string, { readonly value: T; readonly untilMs: number }>();
  return Object.freeze({
    // A one-shot hash of key and text is 0.3 us where createHmac is 1.7. HMAC exists to withstand length
    // extension, which needs a digest to extend: these are never shown. The key's length is fixed, so no
    // two pairs of key and text run together the same.
    keyOf: (authorization: string) => hash('sha256', secret + authorization, 'base64'),
    find(key: string) {
      const entry = entries.get(key);
      return entry !== undefined && clock() < entry.untilMs ? entry.value : undefined;
    },
    wasRight: (key: string) => entries.has(key),
    remember(key: string, value: T) {
      entries.delete(key);
      entries.set(key, { value, untilMs: clock() + ttlMs });
      if (entries.size > entriesMax) entries.delete(entries.keys().next().value ?? key);
    },
    forget(key: string) {
      entries.delete(key);
    },
  });
}
