/** What a client is told of its limits: `RateLimit` and `RateLimit-Policy` (draft-ietf-httpapi-ratelimit-headers-10), or the names of draft 03. */
import type { RateLimitHeaderStyle } from '#config';
import type { CurrentLimit, Decision, Descriptor, DescriptorStatus } from '#ratelimit';
import { waitSeconds } from './retry-after.ts';

/** Header values by name; none when no limit counted the request. `descriptors` are those that were asked about, in the same order. */
export type TellLimits = (decision: Decision, descriptors: readonly Descriptor[]) => Readonly<Record<string, string>>;

export const tellLimits: Readonly<Record<RateLimitHeaderStyle, TellLimits>> = Object.freeze({
  ietf: rateLimitHeaders,
  draft_03: draft03Headers,
  none: () => nothing,
});

const nothing = Object.freeze({});

/**
 * `RateLimit-Policy: "x-key";q=10;w=60` is a name, the quota and the window in seconds, `RateLimit: "x-key";r=9;t=30` what
 * is left, and the seconds until there is more. One item for each limit that counted, in the order of the labels.
 */
function rateLimitHeaders({ statuses }: Decision, descriptors: readonly Descriptor[]): ReturnType<TellLimits> {
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
  return policies === '' ? nothing : { 'RateLimit-Policy': policies, RateLimit: states };
}

/**
 * As Envoy writes them with `enable_x_ratelimit_headers: DRAFT_VERSION_03`: the limit with the least left, the first of
 * equals, and behind its number the list of all of them. Where Envoy says 0 because the service does not tell the
 * window's end, this says the whole window. Source: source/extensions/filters/http/ratelimit/ratelimit_headers.cc of
 * envoyproxy/envoy.
 */
function draft03Headers({ statuses }: Decision): ReturnType<TellLimits> {
  let least: Counted | undefined;
  let policies = '';
  for (const status of statuses) {
    if (!wantsTotal(status)) continue;
    if (least === undefined || status.limitRemaining < least.limitRemaining) least = status;
    const { requestsPerUnit, windowSeconds, name } = status.currentLimit;
    policies += `, ${requestsPerUnit};w=${windowSeconds}${name === undefined ? '' : `;name=${quoted(name)}`}`;
  }
  if (least === undefined) return nothing;
  return {
    'X-RateLimit-Limit': `${least.currentLimit.requestsPerUnit}${policies}`,
    'X-RateLimit-Remaining': String(least.limitRemaining),
    'X-RateLimit-Reset': String(waitSeconds(least)),
  };
}

interface Counted extends DescriptorStatus {
  readonly currentLimit: CurrentLimit;
}

function wantsTotal(status: DescriptorStatus): status is Counted {
  return status.currentLimit !== undefined;
}

function nameOf(descriptor: Descriptor | undefined): string {
  const entries = descriptor?.entries ?? [];
  const name = entries.length > 1 ? entries.map(({ key }) => key).join('.') : entries[0]?.key;
  return name || 'default';
}

/** What a String holds as it is: nearly every name. */
const plain = /^[\x20\x21\x23-\x5b\x5d-\x7e]*$/;

/** A String of structured fields (RFC 9651 section 3.3.3): printable ASCII, with quotes and backslashes escaped. */
function quoted(text: string): string {
  if (plain.test(text)) return `"${text}"`;
  return `"${text.replace(/[^\x20-\x7e]/g, '?').replace(/["\\]/g, '\\$&')}"`;
}
