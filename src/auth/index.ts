/** Authentication: the auth service, its authenticator, users and password hashes. */
export {
  type Authenticator,
  type AuthenticatorOptions,
  createAuthenticator,
  createLoginCounts,
  type LiveAuthenticator,
  type LoginCounts,
} from './authenticator.ts';
export { hashPassword, type Random } from './password-hash.ts';
export {
  type AuthCheck,
  type AuthDecision,
  type AuthRequest,
  type AuthService,
  type AuthServiceOptions,
  createAuthService,
} from './service.ts';
export { createUsers, type UserRecord, type UserStore } from './users.ts';
