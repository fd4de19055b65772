/** Validates requests: a domain, numbers in range and, for requests from the network, size bounds. */
import { requestBounds } from '#config';
import { type Descriptor, type Entry, InvalidRequest, type LimitOverride, type RateLimitRequest } from './limiter.ts';

export const uint32Max = 4_294_967_295;

/**
 * The field is a uint64 on the wire, and Envoy may report byte counts in it. Rejecting large values would leave them
 * uncounted in a gateway that fails open.
 */
export const descriptorHitsMax = 2 ** 64;

/** Each window length has a separate table of counters, so requests must not be able to create arbitrarily many. */
const unitMultiplierMax = 1_000;

/** Throws an `InvalidRequest` for an empty domain, a limit without a unit, or a number out of range. */
export function checkRequest({ domain, descriptors, hitsAddend = 0 }: RateLimitRequest): void {
  if (domain === '') throw new InvalidRequest('domain must not be empty');
  requireNumber('hits_addend', hitsAddend, 0, uint32Max);
  descriptors.forEach(checkDescriptorNumbers);
}

function checkDescriptorNumbers({ limit, hitsAddend: hits = 0 }: Descriptor, index: number): void {
  if (hits !== 0) requireNumber(`descriptors[${index}].hits_addend`, hits, 0, descriptorHitsMax);
  if (limit !== undefined) checkLimit(`descriptors[${index}].limit`, limit);
}

function checkLimit(name: string, { requestsPerUnit, unit, unitMultiplier = 1 }: LimitOverride): void {
  if (unit === undefined) throw new InvalidRequest(`${name} has no unit`);
  requireNumber(`${name}.requests_per_unit`, requestsPerUnit, 0, uint32Max);
  requireNumber(`${name}.unit_multiplier`, unitMultiplier, 1, unitMultiplierMax);
}

function requireNumber(name: string, value: number, min: number, max: number): void {
  if (Number.isInteger(value) && value >= min && value <= max) return;
  throw new InvalidRequest(`${name} must be a whole number from ${min} to ${max}`);
}

/** Throws an `InvalidRequest` that describes the first of `requestBounds` that the request exceeds. */
export function checkBounds({ domain, descriptors }: RateLimitRequest): void {
  if (domain.length > requestBounds.domain) throw tooMuch('domain', domain.length, 'characters', requestBounds.domain);
  if (descriptors.length > requestBounds.descriptors)
    throw tooMuch('descriptors', descriptors.length, 'descriptors', requestBounds.descriptors);
  descriptors.forEach(checkDescriptorBounds);
}

function checkDescriptorBounds({ entries }: Descriptor, index: number): void {
  if (entries.length > requestBounds.entries)
    throw tooMuch(`descriptors[${index}].entries`, entries.length, 'entries', requestBounds.entries);
  const tooLong = entries.findIndex(isTooLong);
  if (tooLong === -1) return;
  const { key = '', value = '' } = entries[tooLong] ?? {};
  const name = `descriptors[${index}].entries[${tooLong}]`;
  if (key.length > requestBounds.key) throw tooMuch(`${name}.key`, key.length, 'characters', requestBounds.key);
  throw tooMuch(`${name}.value`, value.length, 'characters', requestBounds.value);
}

function isTooLong({ key, value }: Entry): boolean {
  return key.length > requestBounds.key || value.length > requestBounds.value;
}

function tooMuch(name: string, length: number, unit: string, max: number): InvalidRequest {
  return new InvalidRequest(`${name} has ${length} ${unit}, more than the maximum of ${max}`);
}
