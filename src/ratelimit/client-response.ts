/** What a response says about a decision: RateLimit headers, `Retry-After`, and which limits are exhausted. */
import type { RateLimitHeaderStyle } from '#config';
import { problems } from '#http';
import type { CurrentLimit, Decision, Descriptor, DescriptorStatus } from './limiter.ts';

/** The statuses of a request's descriptors, in their order. A service may return fewer or more. */
interface Limited {
  readonly statuses: readonly DescriptorStatus[];
  readonly descriptors: readonly (Descriptor | undefined)[];
}

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

/** Returns the seconds until no limit rejects the request, or those of the problem if the service does not report them. */
export function retryAfterSeconds({ statuses }: Pick<Decision, 'statuses'>): number {
  let seconds: number = problems['too-many-requests'].retryAfterSeconds;
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

/** Describes in one or two sentences, for the client, which limits are exhausted and when to send the request again. */
export function describeDenial(
  decision: Decision,
  descriptors: readonly Descriptor[],
  style: RateLimitHeaderStyle,
): string {
  const wait = retryAfterSeconds(decision);
  const limits = style === 'none' ? [] : exhaustedLimits(decision, descriptors);
  return `${describeExhausted(limits)} Send the request again after ${wait} ${wait === 1 ? 'second' : 'seconds'}.`;
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
