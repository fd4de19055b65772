/** Asks the limiter before and after authentication, writes its headers, and refuses with 429. */
import type { Context } from 'koa';
import type { RateLimitService } from '#config';
import { type OutageLog, problem, requestContext, requestLogFields } from '#http';
import type { Decision, Descriptor, Limiter } from '#ratelimit';
import type { InFlightRequest } from '../traffic/traffic.ts';
import { createServiceHeaders, rateLimitHeaders, retryAfterSeconds } from './response-headers.ts';

/** How often each decision was made since the start; `error`: there was none. */
export interface LimitCounts {
  ok: number;
  over: number;
  error: number;
}

/** Throws `too-many-requests` when a limit is exhausted. Asks nothing without descriptors. */
export type AskLimiter = (request: InFlightRequest, descriptors: readonly Descriptor[]) => void | Promise<void>;

export interface LimitStageOptions {
  readonly record: Pick<RateLimitService, 'domain' | 'failureModeDeny' | 'headers' | 'allowedResponseHeaders'>;
  readonly limiter: Limiter;
  /** Counted up. */
  readonly counts: LimitCounts;
  /** Called for each request that the limiter gave no answer to. */
  readonly onUnanswered: () => void;
  readonly outage: OutageLog;
}

/** May be asked twice about one request: the response then carries one list of the limits of both decisions. */
export function createLimitStage(options: LimitStageOptions): AskLimiter {
  const { record, limiter, counts, onUnanswered, outage } = options;
  const { domain } = record;
  const headersOf = rateLimitHeaders[record.headers];
  const writeServiceHeaders = createServiceHeaders(record.allowedResponseHeaders);

  function settle(request: InFlightRequest, decision: Decision, descriptors: readonly Descriptor[]): void {
    outage.answered();
    const { res } = request.ctx;
    // Before ours: where both speak of the limits, the client reads the style that the record asks for.
    writeServiceHeaders(res, decision.responseHeaders);
    addTo(request, decision, descriptors);
    const headers = headersOf(request);
    for (const name in headers) res.setHeader(name, headers[name] ?? '');
    if (decision.overallCode === 'OK') {
      counts.ok += 1;
      return;
    }
    counts.over += 1;
    throw problem('too-many-requests', {
      headers: { 'Retry-After': String(retryAfterSeconds(decision)) },
    });
  }

  function settleUnanswered(ctx: Context, cause: unknown): void {
    counts.error += 1;
    onUnanswered();
    const { mapping } = requestContext(ctx);
    const fields = { mapping, denied: record.failureModeDeny, err: cause };
    if (!isLogged(cause))
      outage.failed({ ...requestLogFields(ctx), ...fields }, 'the rate-limit service gave no answer');
    if (record.failureModeDeny)
      throw problem('ratelimit-unavailable', {
        headers: { 'Retry-After': '1' },
        cause,
      });
  }

  async function settleLater(
    request: InFlightRequest,
    pending: Promise<Decision>,
    descriptors: readonly Descriptor[],
  ): Promise<void> {
    let decision: Decision;
    try {
      decision = await pending;
    } catch (cause) {
      settleUnanswered(request.ctx, cause);
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
      return settleUnanswered(request.ctx, cause);
    }
    if (decision instanceof Promise) return settleLater(request, decision, descriptors);
    return settle(request, decision, descriptors);
  };
}

/** The counters of this process log an outage of their own server. */
function isLogged(cause: unknown): boolean {
  return cause instanceof Error && cause.name === 'CountersUnavailable';
}

/** Keeps each status beside its own descriptor: a service may leave out the last statuses, or send more than there are descriptors. */
function addTo(request: InFlightRequest, { statuses }: Decision, descriptors: readonly Descriptor[]): void {
  const before = request.statuses;
  request.statuses = before.length === 0 ? statuses : [...before, ...statuses];
  request.descriptors =
    before.length === 0 ? descriptors : [...before.map((_, index) => request.descriptors[index]), ...descriptors];
}
