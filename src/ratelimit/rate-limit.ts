/** `rateLimit`: a rate limit as middleware for any Koa app, with or without a gateway. */
import type { Context, Middleware } from 'koa';
import { type Addresses, createGuard, type Problem, problem, requestContext } from '#http';
import { createRateLimit, type Denied, type LimitedKey, type LimitOptions } from './create-rate-limit.ts';

/** Without `logger`, errors are emitted as `error` events of the app, which Koa prints. */
export type RateLimitOptions = LimitOptions & {
  /**
   * Returns the client that a request is counted for, or undefined to let the request pass uncounted.
   * @default the user that `basicAuth` found, otherwise the client's IPv4 address or the /64 of its IPv6 address
   */
  readonly keyOf?: (ctx: Context) => LimitedKey | undefined;
  /** Finds the client behind trusted proxies. @default those of `createRequestContext` */
  readonly addresses?: Addresses;
};

/**
 * Creates a middleware that limits how many requests each client may send. Every counted response has RateLimit headers.
 * When the limit is exhausted, the response is 429 with `Retry-After` and the error body.
 * @throws {TypeError} for a limit that cannot be counted, and for an object that is not a limiter.
 */
export function rateLimit(options: RateLimitOptions): Middleware {
  const { addresses, keyOf = userOrClient } = options;
  const decide = createRateLimit(options);
  const passes = createGuard({ logger: options.logger });

  function userOrClient(ctx: Context): LimitedKey {
    const { user, addresses: known } = requestContext(ctx);
    return user === undefined ? { client: (addresses ?? known).sender(ctx.req).network } : { user };
  }

  return async function limitRequests(ctx, next) {
    const isAllowed = await passes(ctx, async () => {
      const key = keyOf(ctx);
      if (key === undefined) return;
      const decision = await decide(key);
      if (!decision.allowed) throw problemOf(decision);
      ctx.set(decision.headers);
    });
    if (isAllowed) await next();
  };
}

function problemOf({ status, headers, detail, cause }: Denied): Problem {
  return problem(status === 429 ? 'too-many-requests' : 'ratelimit-unavailable', { headers, detail, cause });
}
