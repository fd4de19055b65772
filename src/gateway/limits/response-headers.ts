/** RateLimit headers in both styles, Retry-After, and the headers that a rate-limit service sends along. */
import type { ServerResponse } from 'node:http';
import type { RateLimitHeaderStyle } from '#config';
import type { CurrentLimit, Decision, Descriptor, DescriptorStatus, ResponseHeader } from '#ratelimit';
import type { InFlightRequest } from '../traffic/traffic.ts';

type Limited = Pick<InFlightRequest, 'statuses' | 'descriptors'>;

/** Header values by name; none when no limit counted the request. */
type HeadersOf = (limited: Limited) => Readonly<Record<string, string>>;

export const rateLimitHeaders: Readonly<Record<RateLimitHeaderStyle, HeadersOf>> = Object.freeze({
  ietf: ietfHeaders,
  draft_03: draft03Headers,
  none: () => none,
});

const none = Object.freeze({});

/**
 * draft-ietf-httpapi-ratelimit-headers-10: `RateLimit-Policy: "x-key";q=10;w=60` is a name, the quota and the window in
 * seconds; `RateLimit: "x-key";r=9;t=30` is what is left, and the seconds until there is more. One item for each limit
 * that counted, in the order of the descriptors.
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
 * As Envoy writes them with `enable_x_ratelimit_headers: DRAFT_VERSION_03`: the limit with the least left, the first of
 * equals, followed by the list of all. Where the service does not say when the window ends, Envoy writes 0 and this the
 * whole window. Source: source/extensions/filters/http/ratelimit/ratelimit_headers.cc of envoyproxy/envoy.
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

/** Characters that need no escape in a String: nearly every name has only these. */
const plain = /^[\x20\x21\x23-\x5b\x5d-\x7e]*$/;

/** A String of structured fields (RFC 9651 section 3.3.3): printable ASCII, with quotes and backslashes escaped. */
function quoted(text: string): string {
  if (plain.test(text)) return `"${text}"`;
  return `"${text.replace(/[^\x20-\x7e]/g, '?').replace(/["\\]/g, '\\$&')}"`;
}

/** The largest Integer of structured fields (RFC 9651 section 3.3.1). */
const secondsMax = 999_999_999_999_999;

/** Seconds until no limit refuses the request; 1 when the service does not say. */
export function retryAfterSeconds({ statuses }: Pick<Decision, 'statuses'>): number {
  let seconds = 1;
  for (const status of statuses) {
    if (status.code === 'OVER_LIMIT') seconds = Math.max(seconds, waitSeconds(status));
  }
  return seconds;
}

/** Bounded, since a distant service may send any number. A service of the older protocol does not say when the window ends: then the whole window. */
function waitSeconds({ resetSeconds, currentLimit }: DescriptorStatus): number {
  return Math.min(secondsMax, Math.max(0, resetSeconds ?? currentLimit?.windowSeconds ?? 0));
}

/** Writes the allowed headers of a rate-limit service in place of those that are there; a repeated name keeps all its values. */
type WriteServiceHeaders = (res: ServerResponse, headers: readonly ResponseHeader[] | undefined) => void;

/** `allowed`: lower-case names. */
export function createServiceHeaders(allowed: readonly string[]): WriteServiceHeaders {
  const names = new Set(allowed);
  return (res, headers) => {
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

/** RFC 9110 section 5.5; Node would fail the whole response for any other character. */
function isFieldValue(value: string): boolean {
  return /^[\t\x20-\x7e\x80-\xff]*$/.test(value);
}
