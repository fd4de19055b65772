/** Header to verdict: cached credentials first, otherwise one scrypt, a few at once; reloads with new users. */
import { hash, randomBytes } from 'node:crypto';
import { formatBasic, parseBasic } from './basic.ts';
import { type PasswordHash, type Random, verifyPassword } from './password-hash.ts';
import type { UserStore } from './users.ts';

/** `missing`: there are no credentials. `invalid`: no user has them. `busy`: too many credentials are being checked. */
export type Verdict =
  | { readonly kind: 'user'; readonly name: string }
  | { readonly kind: 'missing' }
  | { readonly kind: 'invalid' }
  | { readonly kind: 'busy' };

export interface Authenticator {
  /**
   * Checks the value of an Authorization header. Cached credentials get the same frozen verdict each time, without a
   * promise; others cost one scrypt. Rejects only when scrypt itself fails.
   */
  authenticate(authorization: string | undefined): Verdict | Promise<Verdict>;
}

export interface AuthenticatorOptions {
  readonly users: UserStore;
  /** Milliseconds from any fixed point. @default performance.now */
  readonly clock?: () => number;
  readonly random?: Random;
  /** How many verified credentials are cached. @default 10_000 */
  readonly cacheEntriesMax?: number;
  /** For how long, in milliseconds. @default 60_000 */
  readonly cacheTtlMs?: number;
  /**
   * How many credentials are verified at once, and as many again of those that were right before, so that a flood of
   * guesses does not lock them out. More than the four threads of libuv's pool would only wait for each other. @default 4
   */
  readonly verificationsMax?: number;
  /** Checks a password against a hash. @default scrypt */
  readonly verify?: (password: string, hash: PasswordHash) => Promise<boolean>;
}

const missing: Verdict = Object.freeze({ kind: 'missing' });
const invalid: Verdict = Object.freeze({ kind: 'invalid' });
const busy: Verdict = Object.freeze({ kind: 'busy' });

export interface ReloadingAuthenticator extends Authenticator {
  /** From the next request on; all credentials are verified again. */
  readonly reload: (users: UserStore) => void;
}

/** A check that runs during a reload ends in the old authenticator, so that its verdict is not cached in the new one. */
export function createReloadingAuthenticator(options: AuthenticatorOptions): ReloadingAuthenticator {
  let authenticator = createAuthenticator(options);
  return Object.freeze({
    authenticate: (authorization: string | undefined) => authenticator.authenticate(authorization),
    reload(users: UserStore) {
      authenticator = createAuthenticator({ ...options, users });
    },
  });
}

/** Only verified credentials are cached, so wrong guesses, however many, evict none of them. */
export function createAuthenticator(options: AuthenticatorOptions): Authenticator {
  const { users, verificationsMax = 4, verify = verifyPassword } = options;
  const cache = createCredentialCache(options);
  const unproven = createSlots(verificationsMax);
  const proven = createSlots(verificationsMax);

  function authenticate(authorization: string | undefined): Verdict | Promise<Verdict> {
    if (authorization === undefined) return missing;
    const key = cache.keyOf(authorization);
    return cache.find(key) ?? verifyOnce(authorization, key);
  }

  function verifyOnce(authorization: string, key: string): Verdict | Promise<Verdict> {
    const credentials = parseBasic(authorization);
    if (credentials === undefined) return invalid;
    const { user, password } = credentials;
    // One user has one entry, however the scheme is spelled: spellings of one password must not fill the cache.
    const canonical = formatBasic(user, password);
    if (canonical !== authorization) return authenticate(canonical);
    const slots = cache.has(key) ? proven : unproven;
    return slots.run(key, () => judge(user, password, key)) ?? busy;
  }

  async function judge(user: string, password: string, key: string): Promise<Verdict> {
    const expected = users.find(user);
    // An unknown name costs as much as a known one, or the time would show which users exist.
    const matches = await verify(password, expected ?? users.dummyHash(user));
    if (!matches || expected === undefined) {
      cache.delete(key);
      return invalid;
    }
    const verdict: Verdict = Object.freeze({ kind: 'user', name: user });
    cache.set(key, verdict);
    return verdict;
  }

  return Object.freeze({ authenticate });
}

/**
 * Verdicts by a keyed hash of the header, at most `cacheEntriesMax`, each for `cacheTtlMs`. A full cache drops the one
 * verified longest ago, which is the next to expire, so a hit writes nothing. Expired entries stay until they are renewed
 * or dropped.
 */
function createCredentialCache({
  clock = () => performance.now(),
  random = randomBytes,
  cacheEntriesMax = 10_000,
  cacheTtlMs = 60_000,
}: AuthenticatorOptions) {
  const secret = Buffer.from(random(32)).toString('base64');
  const entries = new Map<string, { readonly verdict: Verdict; readonly untilMs: number }>();
  return Object.freeze({
    /**
     * Shows nothing of the header. One `hash` costs 0.3 us, an HMAC 1.7: HMAC protects a digest that others see against
     * length extension, and these are never shown. The secret has a fixed length, so no two inputs are the same text.
     */
    keyOf: (authorization: string) => hash('sha256', secret + authorization, 'base64'),
    find(key: string): Verdict | undefined {
      const entry = entries.get(key);
      return entry !== undefined && clock() < entry.untilMs ? entry.verdict : undefined;
    },
    /** Also for an expired entry. */
    has: (key: string) => entries.has(key),
    set(key: string, verdict: Verdict): void {
      entries.delete(key);
      entries.set(key, { verdict, untilMs: clock() + cacheTtlMs });
      if (entries.size > cacheEntriesMax) entries.delete(entries.keys().next().value ?? key);
    },
    delete: (key: string) => void entries.delete(key),
  });
}

/** At most `max` verifications at once, equal ones shared. There is no queue: behind a flood of guesses all others would wait. */
function createSlots(max: number) {
  const running = new Map<string, Promise<Verdict>>();
  return Object.freeze({
    /** Undefined when there is no free slot. */
    run(key: string, verify: () => Promise<Verdict>): Promise<Verdict> | undefined {
      const same = running.get(key);
      if (same !== undefined || running.size >= max) return same;
      const result = verify().finally(() => running.delete(key));
      running.set(key, result);
      return result;
    },
  });
}
