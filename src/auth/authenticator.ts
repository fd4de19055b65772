/** Who is calling: an Authorization header turned into a verdict, at once for who was verified a moment ago. */
import { randomBytes } from 'node:crypto';
import { formatBasic, parseBasic } from './basic-credentials.ts';
import { type PasswordHash, type Random, verifyPassword } from './password-hash.ts';
import { createRememberedCredentials } from './remembered-credentials.ts';
import type { UserStore } from './users.ts';
import { createVerifications } from './verifications.ts';

/** `none`: no credentials were sent. `wrong`: no user has them. `busy`: too many guesses are being checked; ask again. */
export type Verdict =
  | { readonly kind: 'user'; readonly name: string }
  | { readonly kind: 'none' }
  | { readonly kind: 'wrong' }
  | { readonly kind: 'busy' };

export interface Authenticator {
  /**
   * Judges the value of an Authorization header. Remembered credentials are answered at once, with the same frozen
   * object each time; others cost one scrypt. Rejects only when scrypt itself fails.
   */
  authenticate(authorization: string | undefined): Verdict | Promise<Verdict>;
}

export interface AuthenticatorOptions {
  readonly users: UserStore;
  /** Milliseconds from any fixed point. @default a clock that never jumps */
  readonly clock?: () => number;
  readonly random?: Random;
  /** How many verified credentials are remembered. @default 10_000 */
  readonly cacheEntriesMax?: number;
  /** For how long, in milliseconds. @default 60_000 */
  readonly cacheTtlMs?: number;
  /**
   * How many credentials are verified at once, as many again for those that were right before: a flood of guesses
   * then locks nobody out. More than the four threads of libuv's pool would only wait for each other. @default 4
   */
  readonly verificationsMax?: number;
  /** Checks a password against a hash. @default scrypt */
  readonly verify?: (password: string, hash: PasswordHash) => Promise<boolean>;
}

const none: Verdict = Object.freeze({ kind: 'none' });
const wrong: Verdict = Object.freeze({ kind: 'wrong' });
const busy: Verdict = Object.freeze({ kind: 'busy' });

/** Only what was verified is remembered, so wrong guesses, however many, push nobody out. */
export function createAuthenticator({
  users,
  clock = () => performance.now(),
  random = randomBytes,
  cacheEntriesMax = 10_000,
  cacheTtlMs = 60_000,
  verificationsMax = 4,
  verify = verifyPassword,
}: AuthenticatorOptions): Authenticator {
  const remembered = createRememberedCredentials<Verdict>({
    entriesMax: cacheEntriesMax,
    ttlMs: cacheTtlMs,
    clock,
    random,
  });
  const newcomers = createVerifications<Verdict>(verificationsMax);
  const regulars = createVerifications<Verdict>(verificationsMax);

  function authenticate(authorization: string | undefined): Verdict | Promise<Verdict> {
    if (authorization === undefined) return none;
    const key = remembered.keyOf(authorization);
    return remembered.find(key) ?? examine(authorization, key);
  }

  function examine(authorization: string, key: string): Verdict | Promise<Verdict> {
    const credentials = parseBasic(authorization);
    if (credentials === undefined) return wrong;
    const { user, password } = credentials;
    // One user has one entry, however the scheme is spelled: nobody fills the memory with spellings of one password.
    const canonical = formatBasic(user, password);
    if (canonical !== authorization) return authenticate(canonical);
    const slots = remembered.wasRight(key) ? regulars : newcomers;
    return slots.run(key, () => judge(user, password, key)) ?? busy;
  }

  async function judge(user: string, password: string, key: string): Promise<Verdict> {
    const hash = users.find(user);
    // An unknown name costs what a known one does, or the time would tell who exists.
    const matches = await verify(password, hash ?? users.decoy);
    if (!matches || hash === undefined) {
      remembered.forget(key);
      return wrong;
    }
    const verdict: Verdict = Object.freeze({ kind: 'user', name: user });
    remembered.remember(key, verdict);
    return verdict;
  }

  return Object.freeze({ authenticate });
}
