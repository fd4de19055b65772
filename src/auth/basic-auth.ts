/** Basic authentication as middleware for any Koa app, with or without a gateway. */
import type { Middleware } from 'koa';
import { type Logger, silentLogger } from '#foundation';
import { type Addresses, createGuard, encodeHeader, problem, requestContext, userHeader } from '#http';
import { createRefusals, createUncheckedLog, realmDefault, requireAuthenticator, type Verdicts } from './service.ts';
import type { VerifiedUser } from './verdict.ts';

export interface BasicAuthOptions {
  readonly authenticator: Verdicts;
  /** The realm, in printable ASCII, which browsers may show when they prompt for credentials. @default 'api' */
  readonly realm?: string;
  /** Finds the client behind trusted proxies, to throttle its logins. @default those of `createRequestContext` */
  readonly addresses?: Addresses;
  /** @default errors are emitted as `error` events of the app, which Koa prints */
  readonly logger?: Logger;
}

/** What `basicAuth` adds to `ctx.state`. */
export interface BasicAuthState {
  user: VerifiedUser;
}

/**
 * Creates a middleware that lets only requests with valid credentials pass. It sets `ctx.state.user`, and replaces the
 * `X-Travel-User` that the client may have sent. Others get 401 with `WWW-Authenticate`, 429 after too many failed logins,
 * or 503 while too many passwords are being checked, with the error body. If a check fails, the response is 500.
 * @throws {TypeError} for an invalid authenticator or realm.
 */
export function basicAuth(options: BasicAuthOptions): Middleware<BasicAuthState> {
  const { authenticator, realm = realmDefault, addresses, logger = silentLogger } = options;
  requireAuthenticator(authenticator);
  const { forGateway: refusalOf } = createRefusals(realm);
  const logUnchecked = createUncheckedLog(logger);
  const passes = createGuard({ logger: options.logger });
  return async function requireUser(ctx, next) {
    let user: VerifiedUser | undefined;
    await passes(ctx, async () => {
      const sender = () => (addresses ?? requestContext(ctx).addresses).sender(ctx.req);
      const verdict = logUnchecked(await authenticator.verdictOf(ctx.req.headers.authorization, sender));
      if (verdict.kind === 'user') {
        user = verdict;
        return;
      }
      const { slug, ...rest } = refusalOf(verdict);
      throw problem(slug, rest);
    });
    if (user === undefined) return;
    ctx.state.user = user;
    requestContext(ctx).user = user.name;
    ctx.req.headers[userHeader] = encodeHeader(user.name);
    await next();
  };
}
