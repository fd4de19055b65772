/** A request as the codec has it, and as we have it. */
import { InvalidRequest } from './invalid-request.ts';
import type { Descriptor, Entry, RateLimitRequest } from './limiter.ts';
import { units, wireUnits } from './wire-units.ts';

/** `limit` and `hitsAddend` of a descriptor are v3's; null is absent. */
export interface WireRequest {
  readonly domain: string;
  readonly descriptors: readonly WireDescriptor[];
  readonly hitsAddend: number;
}

interface WireDescriptor {
  readonly entries: readonly Entry[];
  readonly limit?: { readonly requestsPerUnit: number; readonly unit: string } | null;
  readonly hitsAddend?: { readonly value: number } | null;
}

export function requestOf({ domain, descriptors, hitsAddend }: WireRequest): RateLimitRequest {
  return { domain, descriptors: descriptors.map(descriptorOf), hitsAddend };
}

function descriptorOf({ entries, limit, hitsAddend }: WireDescriptor): Descriptor {
  if (!limit && !hitsAddend) return { entries };
  return {
    entries,
    ...(limit ? { limit: { requestsPerUnit: limit.requestsPerUnit, unit: units.get(limit.unit) } } : {}),
    ...(hitsAddend ? { hitsAddend: hitsAddend.value } : {}),
  };
}

/** What the codec makes bytes of. */
export function wireRequest(request: RateLimitRequest): object {
  return { ...request, descriptors: request.descriptors.map(wireDescriptor) };
}

function wireDescriptor(descriptor: Descriptor): object {
  const { entries, limit, hitsAddend } = descriptor;
  if (limit === undefined && hitsAddend === undefined) return descriptor;
  if ((limit?.unitMultiplier ?? 1) !== 1) throw new InvalidRequest('a limit with a unit_multiplier cannot be sent');
  return {
    entries,
    limit: limit?.unit && { requestsPerUnit: limit.requestsPerUnit, unit: wireUnits[limit.unit] },
    hitsAddend: hitsAddend === undefined ? undefined : { value: hitsAddend },
  };
}
