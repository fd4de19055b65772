/** `createRateLimit`: decides for any server whether a client may send a request, and what the response says about it. */
import { hash } from 'node:crypto';
import type { RateLimitHeaderStyle } from '#config';
import { createOutageLog, type Logger, silentLogger } from '#foundation';
import { problems } from '#http';
import { requestBounds, type Unit, uint32Max, unitSeconds } from '#ratelimit/limit';
import { describeDenial, rateLimitHeaders, retryAfterSeconds } from './client-response.ts';
import type { Decision, Descriptor, Limiter } from './limiter.ts';
import { createLimiter } from './local-limiter.ts';

/** The same limit for every client. */
export interface OneLimit {
  readonly requestsPerUnit: number;
  readonly unit: Unit;
  /** Counts the requests: one of `connectRateLimit` shares the counts between processes. @default this process alone */
  readonly limiter?: Limiter;
}

/** The limits that the limiter has for the domain and the entries of the client. Without a match, requests pass. */
export interface LimitsOfLimiter {
  readonly requestsPerUnit?: undefined;
  readonly unit?: undefined;
  readonly limiter: Limiter;
}

export type LimitOptions = (OneLimit | LimitsOfLimiter) & {
  /** Separates the counts of this limit from others of the same limiter, and selects its limits. @default 'app' */
  readonly domain?: string;
  /** The style of the RateLimit response headers. @default 'ietf' */
  readonly headers?: RateLimitHeaderStyle;
  /** Rejects requests with 503 while the limiter returns no decision. @default false: they pass uncounted */
  readonly failureModeDeny?: boolean;
  /** Logs when the limiter returns no decision, once per outage. @default nothing is logged */
  readonly logger?: Logger;
};

/**
 * The client that a request is counted for: text, or the entries of a descriptor from general to specific, such as
 * `{ user: 'ann', path: '/search' }`. Values of more than 256 characters are hashed.
 */
export type LimitedKey = string | Readonly<Record<string, string>>;

export interface Allowed {
  readonly allowed: true;
  /** The RateLimit headers of the response. */
  readonly headers: Readonly<Record<string, string>>;
}

export interface Denied {
  readonly allowed: false;
  /** 429 if a limit is exhausted, 503 if the limiter returned no decision. */
  readonly status: 429 | 503;
  /** The RateLimit headers of the response, and `Retry-After`. */
  readonly headers: Readonly<Record<string, string>>;
  readonly retryAfterSeconds: number;
  /** Tells the client in plain English why the request is denied. */
  readonly detail: string;
  /** The error of a limiter that returned no decision, for the log. */
  readonly cause?: unknown;
}

/** Counts one request of the client. Rejects with TypeError for a key that is not text, because all clients would share it. */
export type DecideLimit = (key: LimitedKey) => Promise<Allowed | Denied>;

/**
 * Creates a function that counts a request and decides whether it may pass. `rateLimit` is the same for Koa.
 * @throws {TypeError} for a limit that cannot be counted, and for an object that is not a limiter.
 */
export function createRateLimit(options: LimitOptions): DecideLimit {
  const { domain = 'app', headers: style = 'ietf', failureModeDeny = false, logger = silentLogger } = options;
  const { limiter = createLimiter({ limits: [] }) } = options;
  const limit = limitOf(options);
  requireLimiter(domain, limiter);
  const outage = createOutageLog({ logger, ended: 'the limiter of the rate limit is responding again' });

  function answer(decision: Decision, descriptors: readonly Descriptor[]): Allowed | Denied {
    outage.answered();
    const headers = rateLimitHeaders[style]({ statuses: decision.statuses, descriptors });
    if (decision.overallCode === 'OK') return { allowed: true, headers };
    return deny(429, retryAfterSeconds(decision), describeDenial(decision, descriptors, style), headers);
  }

  function answerError(cause: unknown): Allowed | Denied {
    outage.failed({ denied: failureModeDeny, err: cause }, 'the limiter returned no decision');
    if (!failureModeDeny) return { allowed: true, headers: {} };
    const { retryAfterSeconds: seconds, meaning } = problems['ratelimit-unavailable'];
    return { ...deny(503, seconds, meaning, {}), cause };
  }

  return async function decide(key) {
    const descriptors = [{ entries: entriesOf(key), ...limit }];
    let decision: Decision;
    try {
      decision = await limiter.shouldRateLimit({ domain, descriptors });
    } catch (cause) {
      return answerError(cause);
    }
    return answer(decision, descriptors);
  };
}

function deny(status: Denied['status'], seconds: number, detail: string, headers: Denied['headers']): Denied {
  return {
    allowed: false,
    status,
    headers: { ...headers, 'Retry-After': String(seconds) },
    retryAfterSeconds: seconds,
    detail,
  };
}

/** A limiter would fail for each request that has an invalid limit, and the request would pass uncounted. */
function limitOf({ requestsPerUnit, unit, limiter }: LimitOptions): Pick<Descriptor, 'limit'> {
  if (requestsPerUnit === undefined && unit === undefined && limiter !== undefined) return {};
  if (!isCount(requestsPerUnit))
    throw new TypeError(`\`requestsPerUnit\` must be a whole number from 0 to ${uint32Max}`);
  if (unit === undefined || !Object.hasOwn(unitSeconds, unit))
    throw new TypeError('`unit` must be second, minute, hour, day, week, month or year');
  return { limit: { requestsPerUnit, unit } };
}

function isCount(value: number | undefined): value is number {
  return value !== undefined && Number.isInteger(value) && value >= 0 && value <= uint32Max;
}

function requireLimiter(domain: string, limiter: Limiter): void {
  if (typeof domain !== 'string' || domain === '' || domain.length > requestBounds.domain)
    throw new TypeError(`\`domain\` must be text of 1 to ${requestBounds.domain} characters`);
  if (typeof limiter.shouldRateLimit !== 'function')
    throw new TypeError('the limiter has no function `shouldRateLimit`: use createLimiter or connectRateLimit');
}

function entriesOf(key: LimitedKey): Descriptor['entries'] {
  const entries = Object.entries((typeof key === 'string' ? { key } : key) ?? {});
  if (entries.length === 0 || entries.some(([, value]) => typeof value !== 'string'))
    throw new TypeError('the key of a request must be text, or an object whose values are text');
  return entries.map(([name, value]) => ({ key: name, value: shortened(value) }));
}

const valueLengthMax = 256;

/** Bounds the memory for keys that clients choose. A limiter rejects very long ones, and the request would pass. */
function shortened(value: string): string {
  return value.length > valueLengthMax ? hash('sha256', value, 'base64') : value;
}
