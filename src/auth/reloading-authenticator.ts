/** An authenticator whose users can be replaced while it answers. */
import { type Authenticator, type AuthenticatorOptions, createAuthenticator } from './authenticator.ts';
import type { UserStore } from './users.ts';

export interface ReloadingAuthenticator extends Authenticator {
  /** From the next request on; whoever was verified before is verified anew. */
  readonly reload: (users: UserStore) => void;
}

export function createReloadingAuthenticator(options: AuthenticatorOptions): ReloadingAuthenticator {
  let authenticator = createAuthenticator(options);
  return Object.freeze({
    authenticate: (authorization: string | undefined) => authenticator.authenticate(authorization),
    reload(users: UserStore) {
      authenticator = createAuthenticator({ ...options, users });
    },
  });
}
