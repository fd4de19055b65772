/** The rate-limit stage: asks the limiter before and after authentication, sets its headers, and rejects with 429. */
import type { ServerResponse } from 'node:http';
import type { Context } from 'koa';
import type { RateLimitService } from '#config';
import type { OutageLog } from '#foundation';
import { problem, requestContext, requestLogFields } from '#http';
import {
  type Decision,
  type Descriptor,
  describeDenial,
  type Limiter,
  type ResponseHeader,
  rateLimitHeaders,
  retryAfterSeconds,
} from '#ratelimit';
import type { StageResult } from '../stage-result.ts';
import type { InFlightRequest } from '../traffic/traffic.ts';

/** Counts decisions by outcome since the start. `error` counts calls without a decision. */
export interface LimitCounts {
  ok: number;
  over: number;
  error: number;
}

/** Throws `too-many-requests` when a limit is exhausted. Does not call the limiter without descriptors. */
export type AskLimiter = (request: LimitedRequest, descriptors: readonly Descriptor[]) => StageResult;

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

  function settle(request: LimitedRequest, decision: Decision, descriptors: readonly Descriptor[]): 'continue' {
    outage.answered();
    const { res } = request.ctx;
    // Written first, so that our own RateLimit headers, in the style of the record, replace the service's.
    writeServiceHeaders(res, decision.responseHeaders);
    addTo(request, decision, descriptors);
    const headers = headersOf(request);
    for (const name in headers) res.setHeader(name, headers[name] ?? '');
    if (decision.overallCode === 'OK') {
      counts.ok += 1;
      return 'continue';
    }
    counts.over += 1;
    throw problem('too-many-requests', {
      detail: describeDenial(decision, descriptors, record.headers),
      headers: { 'Retry-After': String(retryAfterSeconds(decision)) },
    });
  }

  function settleError(ctx: Context, cause: unknown): 'continue' {
    counts.error += 1;
    onError();
    const { mapping } = requestContext(ctx);
    const { name, service, failureModeDeny: denied } = record;
    const fields = { mapping, record: name, service, denied, err: cause };
    if (!isLogged(cause))
      outage.failed({ ...requestLogFields(ctx), ...fields }, 'the rate-limit service returned no decision');
    if (denied) throw problem('ratelimit-unavailable', { cause });
    return 'continue';
  }

  async function settleLater(
    request: LimitedRequest,
    pending: Promise<Decision>,
    descriptors: readonly Descriptor[],
  ): Promise<'continue'> {
    let decision: Decision;
    try {
      decision = await pending;
    } catch (cause) {
      return settleError(request.ctx, cause);
    }
    return settle(request, decision, descriptors);
  }

  return function askLimiter(request, descriptors) {
    if (descriptors.length === 0) return 'continue';
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
