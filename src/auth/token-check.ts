/** Decides about requests that have a token: the headers for services, or the response to the client. */
import { bearerChallenge } from './challenges.ts';
import { type AuthDecision, tokenDecision } from './service.ts';
import type { TokenVerdict, TokenVerifier } from './token-verifier.ts';

/** What a gateway asks before the auth service. */
export interface TokenCheck extends Omit<TokenVerifier, 'verdictOf'> {
  /** Returns undefined if the request has no token, so that the auth service decides. Never rejects. */
  readonly check: (
    request: Parameters<TokenVerifier['verdictOf']>[0],
  ) => AuthDecision | Promise<AuthDecision> | undefined;
  /** The challenge for a token, or another caller, without the required claims. */
  readonly insufficientScope: string;
}

export interface TokenCheckOptions {
  readonly verifier: TokenVerifier;
  readonly realm: string;
  /** The headers that name the user, in lower case. */
  readonly userHeaders: readonly string[];
}

export function createTokenCheck({ verifier, realm, userHeaders }: TokenCheckOptions): TokenCheck {
  const { verdictOf, ...rest } = verifier;
  const decide = (verdict: TokenVerdict) => tokenDecision(verdict, realm, userHeaders);
  return Object.freeze({
    ...rest,
    insufficientScope: bearerChallenge(realm, 'insufficient'),
    check(request: Parameters<TokenVerifier['verdictOf']>[0]) {
      const verdict = verdictOf(request);
      if (verdict === undefined) return undefined;
      return verdict instanceof Promise ? verdict.then(decide) : decide(verdict);
    },
  });
}
