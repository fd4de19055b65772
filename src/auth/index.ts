/** Who is calling: Basic credentials, users and password hashes, and the auth service with its two faces. */
export type { AuthAnswer, AuthPort, AuthRequest } from './auth-port.ts';
export {
  type AuthService,
  type AuthServiceOptions,
  createAuthService,
} from './auth-service.ts';
export {
  type Authenticator,
  type AuthenticatorOptions,
  createAuthenticator,
  type Verdict,
} from './authenticator.ts';
export {
  type BasicCredentials,
  formatBasic,
  parseBasic,
} from './basic-credentials.ts';
export {
  hashPassword,
  type PasswordHash,
  parsePasswordHash,
  type Random,
  type ScryptCost,
  verifyPassword,
} from './password-hash.ts';
export { createReloadingAuthenticator, type ReloadingAuthenticator } from './reloading-authenticator.ts';
export { createUsers, type UserStore } from './users.ts';
