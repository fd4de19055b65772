/** Checks an Authorization header: cached credentials first, otherwise one scrypt in the queue; reloads with new users. */
import { hash, randomBytes } from 'node:crypto';
import type { PasswordHash } from '#config';
import type { Sender } from '#http';
import { formatBasic, parseBasic } from './basic.ts';
import { type Checks, createChecks, runningMaxDefault } from './checks.ts';
import { type Random, verifyPassword } from './password-hash.ts';
import { createThrottle, type Login, type Throttle } from './throttle.ts';
import type { UserStore } from './users.ts';

/**
 * `missing`: there are no credentials. `invalid`: no user has them. `busy`: too many credentials are being checked.
 * `throttled`: too many logins from there have failed, and these credentials were not checked.
 */
export type Verdict =
  | { readonly kind: 'user'; readonly name: string; readonly isAdmin: boolean }
  | { readonly kind: 'missing' }
  | { readonly kind: 'invalid' }
  | { readonly kind: 'busy' }
  | { readonly kind: 'throttled'; readonly retryAfterS: number; readonly sender: Sender };

export interface Authenticator {
  /**
   * Checks the value of an Authorization header. Cached credentials get the same frozen verdict each time, without a
   * promise, and are never throttled; others cost one scrypt. Without `sender` only failures of the same user count.
   * Rejects only when scrypt itself fails.
   */
  authenticate(authorization: string | undefined, sender?: () => Sender): Verdict | Promise<Verdict>;
}

/** How password checks ended since the start. */
export interface LoginCounts {
  right: number;
  wrong: number;
  throttled: number;
  busy: number;
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
  /** How many credentials are verified at once. @default 3, and fewer where that leaves no core for requests */
  readonly verificationsMax?: number;
  /** How many more wait for their turn, for two seconds at most. @default 256 */
  readonly waitingMax?: number;
  /** Counted up. @default new counts */
  readonly counts?: LoginCounts;
  /** Checks a password against a hash. @default scrypt */
  readonly verify?: (password: string, hash: PasswordHash) => Promise<boolean>;
}

const missing: Verdict = Object.freeze({ kind: 'missing' });
const invalid: Verdict = Object.freeze({ kind: 'invalid' });
const busy: Verdict = Object.freeze({ kind: 'busy' });

export interface LiveAuthenticator extends Authenticator {
  /** From the next request on; all credentials are verified again. */
  readonly reload: (users: UserStore) => void;
}

/**
 * A check that runs during a reload ends in the old authenticator, so that its verdict is not cached in the new one. Failed
 * logins and the queue outlive reloads. Throws TypeError for users without the functions of a `UserStore`.
 */
export function createAuthenticator(options: AuthenticatorOptions): LiveAuthenticator {
  const bounds = createBounds(options);
  let authenticator = authenticatorOf(options, bounds);
  return Object.freeze({
    authenticate: (authorization: string | undefined, sender?: () => Sender) =>
      authenticator.authenticate(authorization, sender),
    reload(users: UserStore) {
      authenticator = authenticatorOf({ ...options, users }, bounds);
    },
  });
}

export function createLoginCounts(): LoginCounts {
  return { right: 0, wrong: 0, throttled: 0, busy: 0 };
}

/** Less than a proxy waits for an auth service. */
const waitMsMax = 2000;

/** What bounds the cost of wrong passwords. */
interface Bounds {
  readonly throttle: Throttle;
  readonly checks: Checks<Verdict>;
  readonly counts: LoginCounts;
}

function createBounds(options: AuthenticatorOptions): Bounds {
  const { verificationsMax: runningMax = runningMaxDefault, waitingMax = 256, counts = createLoginCounts() } = options;
  return {
    throttle: createThrottle(options),
    checks: createChecks({ runningMax, waitingMax, waitMsMax, refused: busy }),
    counts,
  };
}

const unknownSender: Sender = Object.freeze({ network: '', isShared: true });

/** In front of all others: a guesser cannot send credentials that were right before. */
const provenPlace = Object.freeze({ network: '', rank: Number.NEGATIVE_INFINITY });

/** Only verified credentials are cached, so wrong guesses, however many, evict none of them. */
function authenticatorOf(options: AuthenticatorOptions, { throttle, checks, counts }: Bounds): Authenticator {
  const { users, verify = verifyPassword } = options;
  for (const name of ['find', 'isAdmin', 'dummyHash'] as const)
    if (typeof users?.[name] !== 'function')
      throw new TypeError(`the users have no function \`${name}\`: createUsers makes some that have`);
  const cache = createCredentialCache(options);
  const running = new Map<string, Promise<Verdict>>();

  function authenticate(authorization: string | undefined, sender?: () => Sender): Verdict | Promise<Verdict> {
    if (authorization === undefined) return missing;
    const key = cache.keyOf(authorization);
    return cache.find(key) ?? verifyOnce(authorization, key, sender);
  }

  function verifyOnce(authorization: string, key: string, sender?: () => Sender): Verdict | Promise<Verdict> {
    const credentials = parseBasic(authorization);
    if (credentials === undefined) return invalid;
    const { user, password } = credentials;
    // One user has one entry, however the scheme is spelled: spellings of one password must not fill the cache.
    const canonical = formatBasic(user, password);
    if (canonical !== authorization) return authenticate(canonical, sender);
    const judged = () => judge(user, password, key);
    if (cache.has(key)) return share(key, () => checks.run(provenPlace, judged));
    const from = sender?.() ?? unknownSender;
    return share(`${key} ${from.network}`, () => tryLogin(throttle.loginOf(from, user), from, judged));
  }

  function tryLogin(login: Login, sender: Sender, judged: () => Promise<Verdict>): Verdict | Promise<Verdict> {
    // Again when its turn comes: others of the same sender may have failed meanwhile.
    const refusal = () => throttledBy(login, sender);
    return (
      refusal() ??
      checks.run({ network: sender.network, rank: login.failures() }, async () => {
        const verdict = refusal() ?? (await judged());
        if (verdict.kind === 'user') login.succeeded();
        if (verdict.kind === 'invalid') login.failed();
        return verdict;
      })
    );
  }

  /** The same credentials that arrive together are checked once. */
  function share(id: string, check: () => Verdict | Promise<Verdict>): Verdict | Promise<Verdict> {
    const same = running.get(id);
    if (same !== undefined) return same;
    const verdict = check();
    if (!(verdict instanceof Promise)) return counted(verdict, counts);
    const result = verdict.then((settled) => counted(settled, counts)).finally(() => running.delete(id));
    running.set(id, result);
    return result;
  }

  async function judge(user: string, password: string, key: string): Promise<Verdict> {
    const expected = users.find(user);
    // An unknown name costs as much as a known one, or the time would show which users exist.
    const matches = await verify(password, expected ?? users.dummyHash(user));
    if (!matches || expected === undefined) {
      cache.delete(key);
      return invalid;
    }
    const verdict: Verdict = Object.freeze({ kind: 'user', name: user, isAdmin: users.isAdmin(user) });
    cache.set(key, verdict);
    return verdict;
  }

  return Object.freeze({ authenticate });
}

function throttledBy(login: Login, sender: Sender): Verdict | undefined {
  const waitMs = login.waitMs();
  return waitMs === 0 ? undefined : { kind: 'throttled', retryAfterS: Math.ceil(waitMs / 1000), sender };
}

const countOf = { user: 'right', invalid: 'wrong', throttled: 'throttled', busy: 'busy' } as const;

function counted(verdict: Verdict, counts: LoginCounts): Verdict {
  if (verdict.kind !== 'missing') counts[countOf[verdict.kind]] += 1;
  return verdict;
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
