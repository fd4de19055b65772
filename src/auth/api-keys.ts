/** Finds the user to whom an API key belongs, and throttles wrong keys like wrong passwords. */
import { randomBytes } from 'node:crypto';
import { digestOfKey, formatKey, keyLengthMax } from '#auth/password-hash';
import type { Sender } from '#http';
import type { Throttle } from './throttle.ts';
import type { Random, UserStore } from './users.ts';
import { counted, invalid, type LoginCounts, throttledBy, unknownSender, type Verdict } from './verdict.ts';

interface KeyBounds {
  readonly throttle: Throttle;
  /** Throttles the keys of requests that are explained. */
  readonly rehearsals: Throttle;
  readonly counts: LoginCounts;
}

/**
 * Remembers which keys have been right, so that no failures of others throttle them. There are no more of these than
 * keys. The rest of a check costs one hash, so that nothing else needs to be remembered, shared or queued.
 */
export function createKeyVerdicts(
  users: Pick<UserStore, 'ownerOfKey' | 'isAdmin'>,
  { throttle, rehearsals, counts }: KeyBounds,
) {
  const proven = new Map<string, Verdict>();

  function verdictOfKey(key: string, sender?: () => Sender): Verdict {
    if (!isPlausible(key)) return invalid;
    const digest = digestOfKey(key);
    return proven.get(digest) ?? counted(tryKey(digest, sender?.() ?? unknownSender), counts);
  }

  function tryKey(digest: string, sender: Sender): Verdict {
    const login = throttle.loginOf(sender, throttleName(digest));
    const throttled = throttledBy(login, sender);
    if (throttled !== undefined) return throttled;
    const verdict = find(digest);
    if (verdict.kind === 'user') {
      proven.set(digest, verdict);
      login.succeeded();
    } else login.failed();
    return verdict;
  }

  function find(digest: string): Verdict {
    const owner = users.ownerOfKey?.(digest);
    if (owner === undefined) return invalid;
    const { user: name, key } = owner;
    return Object.freeze({ kind: 'user', name, isAdmin: users.isAdmin(name), key });
  }

  function rehearseKey(key: string, sender?: () => Sender): Verdict {
    if (!isPlausible(key)) return invalid;
    const digest = digestOfKey(key);
    const from = sender?.() ?? unknownSender;
    const name = throttleName(digest);
    const rehearsal = rehearsals.loginOf(from, name);
    const throttled = throttledBy(throttle.loginOf(from, name), from) ?? throttledBy(rehearsal, from);
    const verdict = proven.get(digest) ?? throttled ?? find(digest);
    if (verdict.kind === 'invalid') rehearsal.failed();
    return verdict;
  }

  return { verdictOfKey, rehearseKey };
}

function isPlausible(key: string): boolean {
  return key !== '' && key.length <= keyLengthMax;
}

/** Cannot be the name of a user, which has no control characters. */
function throttleName(digest: string): string {
  return `\0${digest}`;
}

/** Creates a key with 256 random bits. Only its digest need be stored. */
export function createApiKey(random: Random = randomBytes): { readonly key: string; readonly sha256: string } {
  const key = formatKey(random(32));
  return { key, sha256: digestOfKey(key) };
}
