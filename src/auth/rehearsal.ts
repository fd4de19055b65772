/** Decides about requests that are explained, not sent, as the auth service of this process would. */
import type { LiveAuthenticator } from './authenticator.ts';
import { type AuthDecision, type AuthRequest, createDecide, createRefusals, keyIn } from './service.ts';

/** With `user`, assumes that the request has the credentials of this user. */
export type AuthRehearsal = (request: AuthRequest, user: string | undefined) => Promise<AuthDecision>;

export interface RehearsalOptions {
  readonly realm: string;
  /** In lower case, like `keyHeader`. */
  readonly userHeaders: readonly string[];
  /** Undefined when no API keys are accepted. */
  readonly keyHeader: string | undefined;
}

/** Counts no login, neither for metrics nor for the throttle. */
export function createRehearsal(
  { rehearse, rehearseKey, isAdmin }: Pick<LiveAuthenticator, 'rehearse' | 'rehearseKey' | 'isAdmin'>,
  { realm, userHeaders, keyHeader }: RehearsalOptions,
): AuthRehearsal {
  const keyHeaders = keyHeader === undefined ? [] : [keyHeader];
  const decide = createDecide(createRefusals(realm), () => userHeaders);
  return async function rehearseRequest({ headers, sender }, user) {
    if (user !== undefined) return decide({ kind: 'user', name: user, isAdmin: isAdmin(user) });
    const key = keyIn(headers, keyHeaders);
    return decide(key === undefined ? await rehearse(headers.authorization, sender) : rehearseKey(key, sender));
  };
}
