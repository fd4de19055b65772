/** Authentication: the auth service, its authenticator, users and password hashes. */
export { createApiKey } from './api-keys.ts';
export {
  type Authenticator,
  type AuthenticatorOptions,
  createAuthenticator,
  type LiveAuthenticator,
  waitingMaxDefault,
} from './authenticator.ts';
export { type BasicAuthOptions, type BasicAuthState, basicAuth } from './basic-auth.ts';
export { verificationsMaxDefault } from './check-queue.ts';
export { loadUsers } from './load-users.ts';
export { type AuthRehearsal, createRehearsal, type RehearsalOptions } from './rehearsal.ts';
export {
  type AuthCheck,
  type AuthDecision,
  type AuthRequest,
  type AuthService,
  type AuthServiceOptions,
  createAuthService,
  realmDefault,
  type Verdicts,
} from './service.ts';
export type { LoginOutcome } from './throttle.ts';
export { createTokenCheck, type TokenCheck } from './token-check.ts';
export {
  createTokenProviders,
  type OpenTokenProviders,
  type TokenProviders,
  verifiedTokensMaxDefault,
} from './token-providers.ts';
export type { ClaimOf, TokenProviderState, TokenVerifier } from './token-verifier.ts';
export { createUsers, hashPassword, type Random, type UserRecord, type UserStore } from './users.ts';
export { createLoginCounts, type LoginCounts, type Verdict, type VerifiedUser } from './verdict.ts';
