/** Decides about requests that are explained, not sent, as the auth service of this process would. */
import type { LiveAuthenticator } from './authenticator.ts';
import { type AuthDecision, type AuthRequest, createDecide, createRefusals } from './service.ts';

/** With `user`, assumes that the request has the credentials of this user. */
export type AuthRehearsal = (request: AuthRequest, user: string | undefined) => Promise<AuthDecision>;

/** Counts no login, neither for metrics nor for the throttle. `userHeaders`: names in lower case. */
export function createRehearsal(
  { rehearse, isAdmin }: Pick<LiveAuthenticator, 'rehearse' | 'isAdmin'>,
  realm: string,
  userHeaders: readonly string[],
): AuthRehearsal {
  const decide = createDecide(createRefusals(realm), () => userHeaders);
  return async function rehearseRequest({ headers: { authorization }, sender }, user) {
    if (user !== undefined) return decide({ kind: 'user', name: user, isAdmin: isAdmin(user) });
    return decide(await rehearse(authorization, sender));
  };
}
