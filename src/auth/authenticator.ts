/** The authenticator: checks an Authorization header against cached credentials or, with scrypt, against the users. */
import { isUtf8 } from 'node:buffer';
import { hash, randomBytes } from 'node:crypto';
import type { PasswordHash } from '#auth/password-hash';
import { createBoundedMap, hasControlCharacter } from '#foundation';
import type { Sender } from '#http';
import { createKeyVerdicts } from './api-keys.ts';
import { type CheckQueue, createCheckQueue, verificationsMaxDefault } from './check-queue.ts';
import { createThrottle, type Login, type LoginOutcome, type Throttle } from './throttle.ts';
import { type Random, type UserStore, verifyPassword } from './users.ts';
import {
  busy,
  counted,
  createLoginCounts,
  invalid,
  type LoginCounts,
  missing,
  throttledBy,
  unknownSender,
  type Verdict,
  type VerifiedUser,
} from './verdict.ts';

export interface Authenticator {
  /**
   * Resolves to the user to whom the value of an Authorization header belongs, or to undefined, whatever the reason.
   * Without `sender`, logins are throttled by user only. Rejects only if scrypt itself fails.
   */
  authenticate(authorization: string | undefined, sender?: () => Sender): Promise<VerifiedUser | undefined>;
  /**
   * Returns the reason as well, for a response that depends on it: only a verdict of the kind `user` admits anyone. For
   * cached credentials it synchronously returns the same frozen verdict each time and never throttles. Others cost one
   * scrypt computation.
   */
  verdictOf(authorization: string | undefined, sender?: () => Sender): Verdict | Promise<Verdict>;
  /** Returns the verdict on an API key. Never throttles a key that has been right since the users were read. */
  verdictOfKey(key: string, sender?: () => Sender): Verdict;
}

export interface AuthenticatorOptions {
  readonly users: UserStore;
  /** A monotonic clock, in milliseconds. @default performance.now */
  readonly clock?: () => number;
  readonly random?: Random;
  /** Maximum number of verified credentials to cache. @default 10_000 */
  readonly cacheEntriesMax?: number;
  /** How long to cache verified credentials. @default 60_000 */
  readonly cacheTtlMs?: number;
  /** Maximum number of concurrent checks. @default 3, or fewer if that would leave no core for requests */
  readonly verificationsMax?: number;
  /** Maximum number of checks that wait for their turn, for up to two seconds. @default 256 */
  readonly waitingMax?: number;
  /** The counts to increment. @default new counts */
  readonly counts?: LoginCounts;
  /** Checks a password against a hash. @default scrypt */
  readonly verify?: (password: string, hash: PasswordHash) => Promise<boolean>;
  /** Receives the outcome of each login, for the throttles of other threads. */
  readonly onOutcome?: ((outcome: LoginOutcome) => void) | undefined;
}

export interface LiveAuthenticator extends Authenticator {
  /** Replaces the users, starting with the next request. All credentials are verified again. */
  readonly reload: (users: UserStore) => void;
  /** Counts a login that has ended in another thread. */
  readonly learn: (outcome: LoginOutcome) => void;
  /**
   * Returns the verdict that `verdictOf` would, for a request that is explained, not sent. Neither counts nor caches it.
   * Wrong passwords are throttled among explanations, so that these do not help to guess one.
   */
  readonly rehearse: (authorization: string | undefined, sender?: () => Sender) => Promise<Verdict>;
  /** Like `rehearse`, for an API key. */
  readonly rehearseKey: (key: string, sender?: () => Sender) => Verdict;
  readonly isAdmin: (user: string) => boolean;
}

/**
 * Creates an authenticator. A check that is running during a reload finishes with the old users, and its verdict is not
 * cached for the new ones. The throttle and the queue survive reloads. Throws TypeError if `users` lacks a function of
 * `UserStore`.
 */
export function createAuthenticator(options: AuthenticatorOptions): LiveAuthenticator {
  const bounds = createBounds(options);
  let current = createVerdicts(options, bounds);
  let keys = createKeyVerdicts(options.users, bounds);
  return Object.freeze({
    async authenticate(authorization: string | undefined, sender?: () => Sender) {
      const verdict = await current.verdictOf(authorization, sender);
      return verdict.kind === 'user' ? verdict : undefined;
    },
    verdictOf: (authorization: string | undefined, sender?: () => Sender) => current.verdictOf(authorization, sender),
    verdictOfKey: (key: string, sender?: () => Sender) => keys.verdictOfKey(key, sender),
    reload(users: UserStore) {
      current = createVerdicts({ ...options, users }, bounds);
      keys = createKeyVerdicts(users, bounds);
    },
    learn: bounds.throttle.learn,
    rehearse: (authorization: string | undefined, sender?: () => Sender) => current.rehearse(authorization, sender),
    rehearseKey: (key: string, sender?: () => Sender) => keys.rehearseKey(key, sender),
    isAdmin: (user: string) => current.isAdmin(user),
  });
}

export const waitingMaxDefault = 256;

/** Shorter than the time-out of proxies for auth services. */
const waitMsMax = 2000;

/** The parts that bound the cost of wrong passwords and keys. Reloads keep them. */
interface Bounds {
  readonly throttle: Throttle;
  /** Throttles the logins of requests that are explained. */
  readonly rehearsals: Throttle;
  readonly queue: CheckQueue<Verdict>;
  readonly counts: LoginCounts;
}

function createBounds(options: AuthenticatorOptions): Bounds {
  const { verificationsMax: runningMax = verificationsMaxDefault, waitingMax = waitingMaxDefault } = options;
  const { counts = createLoginCounts() } = options;
  return {
    throttle: createThrottle(options),
    rehearsals: createThrottle({ ...options, onOutcome: undefined }),
    queue: createCheckQueue({ runningMax, waitingMax, waitMsMax, refused: busy }),
    counts,
  };
}

/** The front of the queue, for credentials that have been verified before. A guesser cannot have those. */
const provenPlace = Object.freeze({ network: '', rank: Number.NEGATIVE_INFINITY });

/** Caches only verified credentials, so that no number of wrong guesses can evict them. */
function createVerdicts(
  options: AuthenticatorOptions,
  { throttle, rehearsals, queue, counts }: Bounds,
): Pick<LiveAuthenticator, 'verdictOf' | 'rehearse' | 'isAdmin'> {
  const { users, verify = verifyPassword } = options;
  for (const name of ['find', 'isAdmin', 'dummyHash'] as const)
    if (typeof users?.[name] !== 'function')
      throw new TypeError(`the users have no function \`${name}\`: use createUsers`);
  const cache = createCredentialCache(options);
  const running = new Map<string, Promise<Verdict>>();

  function verdictOf(authorization: string | undefined, sender?: () => Sender): Verdict | Promise<Verdict> {
    if (authorization === undefined) return missing;
    const key = cache.keyOf(authorization);
    return cache.find(key) ?? verifyOnce(authorization, key, sender);
  }

  function verifyOnce(authorization: string, key: string, sender?: () => Sender): Verdict | Promise<Verdict> {
    const credentials = parseBasic(authorization);
    if (credentials === undefined) return invalid;
    const { user, password } = credentials;
    // Use the canonical spelling of the header as the key, so that variants of one header cannot fill the cache.
    const canonical = formatBasic(user, password);
    if (canonical !== authorization) return verdictOf(canonical, sender);
    const verifyNow = () => verifyLogin(user, password, key);
    if (cache.has(key)) return share(key, () => queue.run(provenPlace, verifyNow));
    const from = sender?.() ?? unknownSender;
    return share(`${key} ${from.network}`, () => tryLogin(throttle.loginOf(from, user), from, verifyNow));
  }

  function tryLogin(login: Login, sender: Sender, verifyNow: () => Promise<Verdict>): Verdict | Promise<Verdict> {
    const throttled = () => throttledBy(login, sender);
    return (
      throttled() ??
      queue.run({ network: sender.network, rank: login.failures() }, async () => {
        // Check the throttle again, because other logins of the sender may have failed while this one was waiting.
        const verdict = throttled() ?? (await verifyNow());
        if (verdict.kind === 'user') login.succeeded();
        if (verdict.kind === 'invalid') login.failed();
        return verdict;
      })
    );
  }

  /** Shares one check between concurrent requests with the same credentials. */
  function share(id: string, check: () => Verdict | Promise<Verdict>): Verdict | Promise<Verdict> {
    const same = running.get(id);
    if (same !== undefined) return same;
    const verdict = check();
    if (!(verdict instanceof Promise)) return counted(verdict, counts);
    const result = verdict.then((settled) => counted(settled, counts)).finally(() => running.delete(id));
    running.set(id, result);
    return result;
  }

  async function verifyLogin(user: string, password: string, key: string): Promise<Verdict> {
    const verdict = await verifyPasswordOf(user, password);
    if (verdict.kind === 'user') cache.set(key, verdict);
    else cache.delete(key);
    return verdict;
  }

  async function verifyPasswordOf(user: string, password: string): Promise<Verdict> {
    const expected = users.find(user);
    // Spend the same time on unknown names, so that the timing does not reveal which users exist.
    const matches = await verify(password, expected ?? users.dummyHash(user));
    if (!matches || expected === undefined) return invalid;
    return Object.freeze({ kind: 'user', name: user, isAdmin: users.isAdmin(user) });
  }

  async function rehearse(authorization: string | undefined, sender?: () => Sender): Promise<Verdict> {
    if (authorization === undefined) return missing;
    const credentials = parseBasic(authorization);
    if (credentials === undefined) return invalid;
    const { user, password } = credentials;
    const from = sender?.() ?? unknownSender;
    const rehearsal = rehearsals.loginOf(from, user);
    const verifyNow = () => verifyPasswordOf(user, password);
    return throttledBy(throttle.loginOf(from, user), from) ?? tryLogin(rehearsal, from, verifyNow);
  }

  return { verdictOf, rehearse, isAdmin: (user) => users.isAdmin(user) };
}

/**
 * Caches verdicts by a keyed hash of the header. A full cache evicts the verdict that is the next to expire, so a hit
 * need not update anything. Expired entries stay until they are renewed or evicted.
 */
function createCredentialCache({
  clock = () => performance.now(),
  random = randomBytes,
  cacheEntriesMax = 10_000,
  cacheTtlMs = 60_000,
}: AuthenticatorOptions) {
  const secret = Buffer.from(random(32)).toString('base64');
  const entries = createBoundedMap<string, { readonly verdict: Verdict; readonly untilMs: number }>(cacheEntriesMax);
  return Object.freeze({
    /**
     * Returns a key that does not reveal the header. A plain hash is enough: an HMAC would also protect published digests
     * against length extension, and these are never published. The secret has a fixed length, so the concatenation is
     * unambiguous.
     */
    keyOf: (authorization: string) => hash('sha256', secret + authorization, 'base64'),
    find(key: string): Verdict | undefined {
      const entry = entries.get(key);
      return entry !== undefined && clock() < entry.untilMs ? entry.verdict : undefined;
    },
    /** Returns true for an expired entry as well. */
    has: entries.has,
    set(key: string, verdict: Verdict): void {
      entries.set(key, { verdict, untilMs: clock() + cacheTtlMs });
    },
    delete: entries.delete,
  });
}

/** Credentials as the user typed them, sent as `Authorization: Basic` (RFC 7617). */
interface BasicCredentials {
  readonly user: string;
  readonly password: string;
}

/** Bounds the cost of parsing: the maximum length of the header in characters, including the scheme. */
const authorizationCharsMax = 4096;

const basic = /^basic +([A-Za-z0-9+/]+={0,2})$/i;

/**
 * Parses `Basic <base64 of user:password in UTF-8>`. The scheme is case-insensitive, and the first colon separates user
 * and password (RFC 7617 section 2). Returns undefined for a missing header, another scheme, more than 4 KiB,
 * non-canonical base64, invalid UTF-8, and control characters.
 */
export function parseBasic(header: string | undefined): BasicCredentials | undefined {
  if (header === undefined || header.length > authorizationCharsMax) return undefined;
  const encoded = basic.exec(header)?.[1];
  if (encoded === undefined) return undefined;
  const bytes = Buffer.from(encoded, 'base64');
  // Node's decoder accepts almost anything. Encoding the bytes again shows whether the text was canonical.
  if (bytes.toString('base64') !== encoded || !isUtf8(bytes)) return undefined;
  const userPass = bytes.toString('utf8');
  const colon = userPass.indexOf(':');
  if (colon === -1 || hasControlCharacter(userPass)) return undefined;
  return { user: userPass.slice(0, colon), password: userPass.slice(colon + 1) };
}

/**
 * Formats the header for a user and a password, as the inverse of `parseBasic`.
 * @throws {TypeError} if Basic cannot transmit them: for a user name with a colon, or control characters in either.
 */
export function formatBasic(user: string, password: string): string {
  if (user.includes(':')) throw new TypeError('HTTP Basic cannot transmit a user name with a colon (RFC 7617)');
  const userPass = `${user}:${password}`;
  if (hasControlCharacter(userPass)) throw new TypeError('HTTP Basic cannot transmit control characters (RFC 7617)');
  return `Basic ${Buffer.from(userPass, 'utf8').toString('base64')}`;
}
