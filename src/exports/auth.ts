/** `frontdesk/auth`: users, password hashes, Basic authentication as middleware, and the auth service. */
import '../node-version.ts';

export {
  type Authenticator,
  type AuthenticatorOptions,
  type AuthService,
  type AuthServiceOptions,
  type BasicAuthOptions,
  type BasicAuthState,
  basicAuth,
  createApiKey,
  createAuthenticator,
  createAuthService,
  createUsers,
  hashPassword,
  type LiveAuthenticator,
  loadUsers,
  type UserRecord,
  type UserStore,
  type Verdict,
  type Verdicts,
  type VerifiedUser,
} from '#auth';
export { type Addresses, type AddressOptions, createAddresses } from '#http';
