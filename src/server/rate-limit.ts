/** A rate limit as middleware for any Koa app, with or without a gateway. */
import { hash } from 'node:crypto';
import type { Context, Middleware } from 'koa';
import type { RateLimitHeaderStyle } from '#config';
import { createLimitStage } from '#gateway';
import { type Addresses, createGuard, createOutageLog, type Logger, requestContext, silentLogger } from '#http';
import { type CurrentLimit, createLimiter, type Descriptor, type Limiter } from '#ratelimit';
import { requestBounds, windowSeconds } from '#ratelimit/limit';

export interface RateLimitOptions extends Pick<CurrentLimit, 'requestsPerUnit' | 'unit'> {
  /**
   * Returns the client that a request is counted for, or undefined to let the request pass uncounted.
   * @default the user that `basicAuth` found, otherwise the client's IPv4 address or the /64 of its IPv6 address
   */
  readonly keyOf?: (ctx: Context) => string | undefined;
  /** Counts the requests: one of `connectRateLimit` shares the counts between processes. @default this process alone */
  readonly limiter?: Limiter;
  /** Separates the counts of this limit from others of the same limiter. @default 'app' */
  readonly domain?: string;
  /** The style of the RateLimit response headers. @default 'ietf' */
  readonly headers?: RateLimitHeaderStyle;
  /** Rejects requests with 503 while the limiter returns no decision. @default false: they pass uncounted */
  readonly failureModeDeny?: boolean;
  /** Finds the client behind trusted proxies. @default those of `createRequestContext` */
  readonly addresses?: Addresses;
  /** @default errors are emitted as `error` events of the app, which Koa prints */
  readonly logger?: Logger;
}

/**
 * Creates a middleware that limits how many requests each client may send. Every counted response has RateLimit headers.
 * When the limit is exhausted, the response is 429 with `Retry-After` and the error body.
 * @throws {TypeError} for a limit that cannot be counted, and for an object that is not a limiter.
 */
export function rateLimit(options: RateLimitOptions): Middleware {
  const { requestsPerUnit, unit, domain = 'app', headers = 'ietf', failureModeDeny = false } = options;
  const { limiter = createLimiter({ limits: [] }), addresses, logger = silentLogger } = options;
  requireLimit(options, domain, limiter);
  const askLimiter = createLimitStage({
    record: { name: 'rateLimit', service: 'limiter', domain, failureModeDeny, headers, allowedResponseHeaders: [] },
    limiter,
    counts: { ok: 0, over: 0, error: 0 },
    onError: () => {},
    outage: createOutageLog({ logger, ended: 'the limiter of rateLimit is responding again' }),
  });
  const entryOf = createEntry(options.keyOf, addresses);
  const descriptorsOf = (ctx: Context): Descriptor[] => {
    const entry = entryOf(ctx);
    return entry === undefined ? [] : [{ entries: [entry], limit: { requestsPerUnit, unit } }];
  };
  const passes = createGuard({ logger: options.logger });
  return async function limitRequests(ctx, next) {
    const request = { ctx, statuses: [], descriptors: [] };
    if (await passes(ctx, () => askLimiter(request, descriptorsOf(ctx)))) await next();
  };
}

const requestsMax = 4_294_967_295;

/** A limiter would fail for each request that has such a limit, and the request would pass uncounted. */
function requireLimit({ requestsPerUnit, unit }: RateLimitOptions, domain: string, limiter: Limiter): void {
  if (!Number.isInteger(requestsPerUnit) || requestsPerUnit < 0 || requestsPerUnit > requestsMax)
    throw new TypeError(`\`requestsPerUnit\` must be a whole number from 0 to ${requestsMax}`);
  if (!Number.isFinite(windowSeconds({ unit, unitMultiplier: 1 })))
    throw new TypeError('`unit` must be second, minute, hour, day, week, month or year');
  if (typeof domain !== 'string' || domain === '' || domain.length > requestBounds.domain)
    throw new TypeError(`\`domain\` must be text of 1 to ${requestBounds.domain} characters`);
  if (typeof limiter.shouldRateLimit !== 'function')
    throw new TypeError('the limiter has no function `shouldRateLimit`: use createLimiter or connectRateLimit');
}

const keyLengthMax = 256;

/** Returns what identifies the client. Throws TypeError for a key that is not text, because all clients would share it. */
function createEntry(keyOf: RateLimitOptions['keyOf'], addresses: Addresses | undefined) {
  if (keyOf === undefined) {
    return (ctx: Context) => {
      const { user, addresses: known } = requestContext(ctx);
      if (user !== undefined) return { key: 'user', value: user };
      return { key: 'client', value: (addresses ?? known).sender(ctx.req).network };
    };
  }
  return (ctx: Context) => {
    const key: unknown = keyOf(ctx);
    if (key === undefined) return undefined;
    if (typeof key !== 'string') throw new TypeError('`keyOf` must return text, or undefined for an uncounted request');
    // Bounds the memory for keys that clients choose. A limiter rejects very long ones, and the request would pass.
    return { key: 'key', value: key.length > keyLengthMax ? hash('sha256', key, 'base64') : key };
  };
}
