/** The result of checking credentials, and the counts of results. */
import type { Sender } from '#http';
import type { Login } from './throttle.ts';

/**
 * The result of a check:
 *
 * - `user`: the credentials belong to this user
 * - `missing`: there are no credentials
 * - `invalid`: the credentials are malformed or belong to no user
 * - `busy`: not checked, because too many checks are running
 * - `throttled`: not checked, because too many logins from the sender have failed
 */
export type Verdict =
  | VerifiedUser
  | { readonly kind: 'missing' }
  | { readonly kind: 'invalid' }
  | { readonly kind: 'busy' }
  | { readonly kind: 'throttled'; readonly retryAfterS: number; readonly sender: Sender };

export interface VerifiedUser {
  readonly kind: 'user';
  readonly name: string;
  readonly isAdmin: boolean;
  /** The name of the user's API key, if one was sent. */
  readonly key?: string;
}

export const missing: Verdict = Object.freeze({ kind: 'missing' });
export const invalid: Verdict = Object.freeze({ kind: 'invalid' });
export const busy: Verdict = Object.freeze({ kind: 'busy' });

/** Counts the outcomes of checks of passwords and API keys that were not remembered. */
export interface LoginCounts {
  right: number;
  wrong: number;
  throttled: number;
  busy: number;
}

export function createLoginCounts(): LoginCounts {
  return { right: 0, wrong: 0, throttled: 0, busy: 0 };
}

export function throttledBy(login: Login, sender: Sender): Verdict | undefined {
  const waitMs = login.waitMs();
  return waitMs === 0 ? undefined : { kind: 'throttled', retryAfterS: Math.ceil(waitMs / 1000), sender };
}

const countOf = { user: 'right', invalid: 'wrong', throttled: 'throttled', busy: 'busy' } as const;

export function counted(verdict: Verdict, counts: LoginCounts): Verdict {
  if (verdict.kind !== 'missing') counts[countOf[verdict.kind]] += 1;
  return verdict;
}

export const unknownSender: Sender = Object.freeze({ network: '', isShared: true });
