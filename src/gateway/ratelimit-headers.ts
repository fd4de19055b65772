/** What a client is told of its limits: `RateLimit` and `RateLimit-Policy` (draft-ietf-httpapi-ratelimit-headers-10), `Retry-After`. */
import type { Decision, Descriptor, DescriptorStatus } from '#ratelimit';

export interface RateLimitHeaders {
  /** `"x-key";q=10;w=60`: a name, the quota and the window in seconds; one item for each limit that counted. */
  readonly policy: string;
  /** `"x-key";r=9;t=30`: what is left, and the seconds until there is more. */
  readonly state: string;
  /** Seconds until no limit stands in the way; undefined unless one does. */
  readonly retryAfter: number | undefined;
}

/** Undefined when no limit counted the request. `descriptors` are those that were asked about, in the same order. */
export function rateLimitHeaders(decision: Decision, descriptors: readonly Descriptor[]): RateLimitHeaders | undefined {
  const policies: string[] = [];
  const states: string[] = [];
  let retryAfter: number | undefined;
  decision.statuses.forEach((status, index) => {
    const limit = status.currentLimit;
    if (limit === undefined) return;
    const name = quoted(limit.name ?? nameOf(descriptors[index]));
    policies.push(`${name};q=${limit.requestsPerUnit};w=${limit.windowSeconds}`);
    states.push(
      `${name};r=${status.limitRemaining}${status.resetSeconds === undefined ? '' : `;t=${status.resetSeconds}`}`,
    );
    if (status.code === 'OVER_LIMIT') retryAfter = Math.max(retryAfter ?? 1, waitSeconds(status, limit.windowSeconds));
  });
  if (policies.length === 0) return undefined;
  return { policy: policies.join(', '), state: states.join(', '), retryAfter };
}

/** A service of the older protocol does not say when the window ends; the whole window is the safe answer. */
function waitSeconds({ resetSeconds }: DescriptorStatus, windowSeconds: number): number {
  return resetSeconds ?? windowSeconds;
}

function nameOf(descriptor: Descriptor | undefined): string {
  return descriptor?.entries.map(({ key }) => key).join('.') || 'default';
}

/** A String of structured fields (RFC 9651 section 3.3.3): printable ASCII, with quotes and backslashes escaped. */
function quoted(text: string): string {
  return `"${text.replace(/[^\x20-\x7e]/g, '?').replace(/["\\]/g, '\\$&')}"`;
}
