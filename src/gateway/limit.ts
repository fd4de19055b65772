/** The stage that asks "may they?": counts what is labelled, tells the client, and refuses what is over. */
import type { Context } from 'koa';
import type { RateLimitService } from '#config';
import { type Logger, logRequest, problem, requestContext } from '#http';
import type { Decision, Descriptor, Limiter } from '#ratelimit';
import { tellLimits } from './ratelimit-headers.ts';
import { retryAfterSeconds } from './retry-after.ts';
import { createWriteServiceHeaders } from './service-headers.ts';

/** How often each answer was given since the start; `error` is a request that the service said nothing about. */
export interface LimitCounts {
  ok: number;
  over: number;
  error: number;
}

export interface Limitation {
  /** Throws `too-many-requests` when a limit is used up. Without a descriptor nobody is asked. */
  readonly limit: (ctx: Context, descriptors: readonly Descriptor[]) => void | Promise<void>;
}

export interface LimitationOptions {
  readonly record: Pick<RateLimitService, 'domain' | 'failureModeDeny' | 'headers' | 'allowedResponseHeaders'>;
  readonly limiter: Limiter;
  /** Counted up. */
  readonly counts: LimitCounts;
  /** Hears of each request that the service said nothing about. */
  readonly onSilence: () => void;
  readonly logger: Logger;
}

export function createLimitation({ record, limiter, counts, onSilence, logger }: LimitationOptions): Limitation {
  const { domain } = record;
  const tell = tellLimits[record.headers];
  const writeServiceHeaders = createWriteServiceHeaders(record.allowedResponseHeaders);

  function settle(ctx: Context, decision: Decision, descriptors: readonly Descriptor[]): void {
    // Ours come second: where both say something of the limits, the client reads what the record asks for.
    writeServiceHeaders(ctx.res, decision.responseHeaders);
    const told = tell(decision, descriptors);
    for (const name in told) ctx.res.setHeader(name, told[name] ?? '');
    if (decision.overallCode === 'OK') {
      counts.ok += 1;
      return;
    }
    counts.over += 1;
    throw problem('too-many-requests', {
      headers: { 'Retry-After': String(retryAfterSeconds(decision)) },
    });
  }

  function settleError(ctx: Context, cause: unknown): void {
    counts.error += 1;
    onSilence();
    const { mapping } = requestContext(ctx);
    const fields = { mapping, denied: record.failureModeDeny, err: cause };
    logRequest(logger, 'warn', ctx, fields, 'the rate-limit service gave no answer');
    if (record.failureModeDeny)
      throw problem('ratelimit-unavailable', {
        headers: { 'Retry-After': '1' },
        cause,
      });
  }

  async function settleLater(
    ctx: Context,
    pending: Promise<Decision>,
    descriptors: readonly Descriptor[],
  ): Promise<void> {
    let decision: Decision;
    try {
      decision = await pending;
    } catch (cause) {
      settleError(ctx, cause);
      return;
    }
    settle(ctx, decision, descriptors);
  }

  return Object.freeze({
    limit(ctx: Context, descriptors: readonly Descriptor[]) {
      if (descriptors.length === 0) return undefined;
      let decision: Decision | Promise<Decision>;
      try {
        decision = limiter.shouldRateLimit({ domain, descriptors });
      } catch (cause) {
        return settleError(ctx, cause);
      }
      if (decision instanceof Promise) return settleLater(ctx, decision, descriptors);
      return settle(ctx, decision, descriptors);
    },
  });
}
