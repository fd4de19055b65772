/** A limiter whose limits can be replaced while it answers. */
import { createLimiter, type LimiterOptions } from './create-limiter.ts';
import type { Limiter } from './limiter.ts';
import { createMemoryCounters } from './memory-counters.ts';

export interface ReloadingLimiter extends Limiter {
  /** From the next request on; a request that is being decided keeps the limits that it began with. Counters stay. */
  readonly reload: (limits: LimiterOptions['limits']) => void;
}

/** The limits are compiled before they are exchanged: no request meets half a set. */
export function createReloadingLimiter({
  counters = createMemoryCounters(),
  ...options
}: LimiterOptions): ReloadingLimiter {
  let limiter = createLimiter({ ...options, counters });
  return Object.freeze({
    shouldRateLimit: (request: Parameters<Limiter['shouldRateLimit']>[0]) => limiter.shouldRateLimit(request),
    explain: (request: Parameters<Limiter['shouldRateLimit']>[0]) => limiter.explain?.(request) ?? [],
    reload(limits: LimiterOptions['limits']) {
      limiter = createLimiter({ ...options, counters, limits });
    },
  });
}
