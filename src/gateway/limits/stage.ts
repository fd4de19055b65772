/** The rate-limit stage: asks the limiter before and after authentication, sets its headers, and rejects with 429. */
import type { ServerResponse } from 'node:http';
import type { Context } from 'koa';
import type { RateLimitHeaderStyle, RateLimitService } from '#config';
import { type OutageLog, problem, requestContext, requestLogFields } from '#http';
import type { CurrentLimit, Decision, Descriptor, DescriptorStatus, Limiter, ResponseHeader } from '#ratelimit';
import type { InFlightRequest } from '../traffic/traffic.ts';

/** Counts decisions by outcome since the start. `error` counts calls without a decision. */
export interface LimitCounts {
  ok: number;
  over: number;
  error: number;
}

/** Throws `too-many-requests` when a limit is exhausted. Does not call the limiter without descriptors. */
export type AskLimiter = (request: LimitedRequest, descriptors: readonly Descriptor[]) => void | Promise<void>;

/** Collects the statuses of all calls for a request. Both lists are empty at first. */
export type LimitedRequest = Pick<InFlightRequest, 'ctx' | 'statuses' | 'descriptors'>;

export interface LimitStageOptions {
  readonly record: Pick<
    RateLimitService,
    'name' | 'service' | 'domain' | 'failureModeDeny' | 'headers' | 'allowedResponseHeaders'
  >;
  readonly limiter: Limiter;
  /** Counters to increment. */
  readonly counts: LimitCounts;
  /** Called for each request for which the limiter returned no decision. */
  readonly onError: () => void;
  readonly outage: OutageLog;
}

/** The returned function may be called twice for a request. The response headers then list the limits of both calls. */
export function createLimitStage(options: LimitStageOptions): AskLimiter {
  const { record, limiter, counts, onError, outage } = options;
  const { domain } = record;
  const headersOf = rateLimitHeaders[record.headers];
  const writeServiceHeaders = createServiceHeaders(record.allowedResponseHeaders);

  function settle(request: LimitedRequest, decision: Decision, descriptors: readonly Descriptor[]): void {
    outage.answered();
    const { res } = request.ctx;
    // Written first, so that our own RateLimit headers, in the style of the record, replace the service's.
    writeServiceHeaders(res, decision.responseHeaders);
    addTo(request, decision, descriptors);
    const headers = headersOf(request);
    for (const name in headers) res.setHeader(name, headers[name] ?? '');
    if (decision.overallCode === 'OK') {
      counts.ok += 1;
      return;
    }
    counts.over += 1;
    const wait = retryAfterSeconds(decision);
    const limits = record.headers === 'none' ? [] : exhaustedLimits(decision, descriptors);
    throw problem('too-many-requests', {
      detail: `${describeExhausted(limits)} Send the request again after ${wait} ${wait === 1 ? 'second' : 'seconds'}.`,
      headers: { 'Retry-After': String(wait) },
    });
  }

  function settleError(ctx: Context, cause: unknown): void {
    counts.error += 1;
    onError();
    const { mapping } = requestContext(ctx);
    const { name, service, failureModeDeny: denied } = record;
    const fields = { mapping, record: name, service, denied, err: cause };
    if (!isLogged(cause))
      outage.failed({ ...requestLogFields(ctx), ...fields }, 'the rate-limit service returned no decision');
    if (denied) throw problem('ratelimit-unavailable', { headers: { 'Retry-After': '1' }, cause });
  }

  async function settleLater(
    request: LimitedRequest,
    pending: Promise<Decision>,
    descriptors: readonly Descriptor[],
  ): Promise<void> {
    let decision: Decision;
    try {
      decision = await pending;
    } catch (cause) {
      settleError(request.ctx, cause);
      return;
    }
    settle(request, decision, descriptors);
  }

  return function askLimiter(request, descriptors) {
    if (descriptors.length === 0) return undefined;
    let decision: Decision | Promise<Decision>;
    try {
      decision = limiter.shouldRateLimit({ domain, descriptors });
    } catch (cause) {
      return settleError(request.ctx, cause);
    }
    if (decision instanceof Promise) return settleLater(request, decision, descriptors);
    return settle(request, decision, descriptors);
  };
}

/** Returns at most five. Their names are those in the RateLimit headers: the values that they count are not shown. */
function exhaustedLimits({ statuses }: Decision, descriptors: readonly Descriptor[]): readonly string[] {
  const limits = statuses.flatMap(({ code, currentLimit: limit }, index) => {
    if (code !== 'OVER_LIMIT' || limit === undefined) return [];
    const { requestsPerUnit, windowSeconds } = limit;
    return [`"${limit.name ?? nameOf(descriptors[index])}" of ${requestsPerUnit} requests in ${windowSeconds} seconds`];
  });
  return limits.slice(0, 5);
}

function describeExhausted(limits: readonly string[]): string {
  if (limits.length === 0) return 'A limit is exhausted.';
  return limits.length === 1
    ? `The limit ${limits[0]} is exhausted.`
    : `The limits ${limits.join(' and ')} are exhausted.`;
}

/** True for failures of the counters in this process, which log an outage of their server themselves. */
function isLogged(cause: unknown): boolean {
  return cause instanceof Error && cause.name === 'CountersUnavailable';
}

/** Keeps statuses and descriptors aligned, because a service may return fewer or more statuses than descriptors. */
function addTo(request: LimitedRequest, { statuses }: Decision, descriptors: readonly Descriptor[]): void {
  const before = request.statuses;
  request.statuses = before.length === 0 ? statuses : [...before, ...statuses];
  request.descriptors =
    before.length === 0 ? descriptors : [...before.map((_, index) => request.descriptors[index]), ...descriptors];
}

type Limited = Pick<InFlightRequest, 'statuses' | 'descriptors'>;

/** Returns header values by name. Empty when no limit counted the request. */
type HeadersOf = (limited: Limited) => Readonly<Record<string, string>>;

export const rateLimitHeaders: Readonly<Record<RateLimitHeaderStyle, HeadersOf>> = Object.freeze({
  ietf: ietfHeaders,
  draft_03: draft03Headers,
  none: () => none,
});

const none = Object.freeze({});

/** Limits that do not fit are left out: clients reject a large head, and a service may return thousands of statuses. */
const listLengthMax = 2048;

/**
 * Follows draft-ietf-httpapi-ratelimit-headers-10. `RateLimit-Policy: "x-key";q=10;w=60` has a name, the quota and the
 * window in seconds. `RateLimit: "x-key";r=9;t=30` has the remaining quota and the seconds until the reset. There is
 * one item for each limit that counted the request, in the order of the descriptors.
 */
function ietfHeaders({ statuses, descriptors }: Limited): ReturnType<HeadersOf> {
  let policies = '';
  let states = '';
  for (let index = 0; index < statuses.length; index += 1) {
    const status = statuses[index];
    const limit = status?.currentLimit;
    if (status === undefined || limit === undefined) continue;
    const name = quoted(limit.name ?? nameOf(descriptors[index]));
    const reset = status.resetSeconds === undefined ? '' : `;t=${waitSeconds(status)}`;
    const comma = policies === '' ? '' : ', ';
    const policy = `${comma}${name};q=${limit.requestsPerUnit};w=${limit.windowSeconds}`;
    if (policies.length + policy.length > listLengthMax) continue;
    policies += policy;
    states += `${comma}${name};r=${status.limitRemaining}${reset}`;
  }
  return policies === '' ? none : { 'RateLimit-Policy': policies, RateLimit: states };
}

/**
 * Matches the headers that Envoy writes with `enable_x_ratelimit_headers: DRAFT_VERSION_03`: the limit with the
 * smallest remaining quota, or the first of several, followed by the list of all limits. If the service does not report
 * when the window ends, Envoy writes 0, but this writes the whole window. Source:
 * source/extensions/filters/http/ratelimit/ratelimit_headers.cc of envoyproxy/envoy.
 */
function draft03Headers({ statuses }: Limited): ReturnType<HeadersOf> {
  let least: Counted | undefined;
  let policies = '';
  for (const status of statuses) {
    if (!isCounted(status)) continue;
    if (least === undefined || status.limitRemaining < least.limitRemaining) least = status;
    const { requestsPerUnit, windowSeconds, name } = status.currentLimit;
    const policy = `, ${requestsPerUnit};w=${windowSeconds}${name === undefined ? '' : `;name=${quoted(name)}`}`;
    if (policies.length + policy.length <= listLengthMax) policies += policy;
  }
  if (least === undefined) return none;
  return {
    'X-RateLimit-Limit': `${least.currentLimit.requestsPerUnit}${policies}`,
    'X-RateLimit-Remaining': String(least.limitRemaining),
    'X-RateLimit-Reset': String(waitSeconds(least)),
  };
}

interface Counted extends DescriptorStatus {
  readonly currentLimit: CurrentLimit;
}

function isCounted(status: DescriptorStatus): status is Counted {
  return status.currentLimit !== undefined;
}

function nameOf(descriptor: Descriptor | undefined): string {
  const entries = descriptor?.entries ?? [];
  const name = entries.length > 1 ? entries.map(({ key }) => key).join('.') : entries[0]?.key;
  return name || 'default';
}

/** Matches text that needs no escaping in a String, which nearly every name is. */
const plain = /^[\x20\x21\x23-\x5b\x5d-\x7e]*$/;

/** Formats a structured-field String (RFC 9651 section 3.3.3): printable ASCII with escaped quotes and backslashes. */
function quoted(text: string): string {
  if (plain.test(text)) return `"${text}"`;
  return `"${text.replace(/[^\x20-\x7e]/g, '?').replace(/["\\]/g, '\\$&')}"`;
}

/** The largest structured-field Integer (RFC 9651 section 3.3.1). */
const secondsMax = 999_999_999_999_999;

/** Returns the seconds until no limit rejects the request, or 1 if the service does not report them. */
export function retryAfterSeconds({ statuses }: Pick<Decision, 'statuses'>): number {
  let seconds = 1;
  for (const status of statuses) {
    if (status.code === 'OVER_LIMIT') seconds = Math.max(seconds, waitSeconds(status));
  }
  return seconds;
}

/**
 * Bounds the seconds, because a remote service may send any number. Services of the older protocol do not report when
 * the window ends, so this returns the length of the window for them.
 */
function waitSeconds({ resetSeconds, currentLimit }: DescriptorStatus): number {
  return Math.min(secondsMax, Math.max(0, resetSeconds ?? currentLimit?.windowSeconds ?? 0));
}

/**
 * Creates a function that sets the allowed headers of a rate-limit service, replacing existing ones. A repeated header
 * keeps all its values. `allowed`: lower-case names.
 */
export function createServiceHeaders(allowed: readonly string[]) {
  const names = new Set(allowed);
  return (res: ServerResponse, headers: readonly ResponseHeader[] | undefined): void => {
    if (headers === undefined) return;
    const written = new Set<string>();
    for (const { name, value } of headers) {
      const lowerCase = name.toLowerCase();
      if (!names.has(lowerCase) || !isFieldValue(value)) continue;
      if (!written.has(lowerCase)) res.removeHeader(name);
      written.add(lowerCase);
      res.appendHeader(name, value);
    }
  };
}

/** Checks a value against RFC 9110 section 5.5, because Node throws for any other character. */
function isFieldValue(value: string): boolean {
  return /^[\t\x20-\x7e\x80-\xff]*$/.test(value);
}
