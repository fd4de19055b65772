/** Who is calling: the auth service, its authenticator, users and password hashes. */
export {
  type Authenticator,
  createAuthenticator,
  createLoginCounts,
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
export { createUsers } from './users.ts';
