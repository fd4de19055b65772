/** Response headers of rate limiting: RateLimit in two styles, Retry-After, and headers from the rate-limit service. */
import type { ServerResponse } from 'node:http';
import type { RateLimitHeaderStyle } from '#config';
import type { CurrentLimit, Decision, Descriptor, DescriptorStatus, ResponseHeader } from '#ratelimit';
import type { InFlightRequest } from '../traffic/traffic.ts';

type Limited = Pick<InFlightRequest, 'statuses' | 'descriptors'>;

/** Returns header values by name. Empty when no limit counted the request. */
type HeadersOf = (limited: Limited) => Readonly<Record<string, string>>;

export const rateLimitHeaders: Readonly<Record<RateLimitHeaderStyle, HeadersOf>> = Object.freeze({
  ietf: ietfHeaders,
  draft_03: draft03Headers,
  none: () => none,
});

const none = Object.freeze({});

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
    policies += `${comma}${name};q=${limit.requestsPerUnit};w=${limit.windowSeconds}`;
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
    policies += `, ${requestsPerUnit};w=${windowSeconds}${name === undefined ? '' : `;name=${quoted(name)}`}`;
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
