/** Which requests are refused: an empty domain, numbers out of range, and from the network more than its bounds. */
import { requestBounds } from '#config';
import { type Descriptor, type Entry, InvalidRequest, type LimitOverride, type RateLimitRequest } from './limiter.ts';

const numberMax = 4_294_967_295;

/** uint64 on the wire: Envoy reports so many bytes, and a gateway that fails open would not count what is refused. */
export const ownHitsMax = 2 ** 64;

/** Counters of each window length have their own table, so a request may not create any number of lengths. */
const unitMultiplierMax = 1_000;

/** Throws an `InvalidRequest` for an empty domain, a limit without a unit, and numbers that the protocol has no room for. */
export function checkRequest({ domain, descriptors, hitsAddend = 0 }: RateLimitRequest): void {
  if (domain === '') throw new InvalidRequest('domain must not be empty');
  requireNumber('hits_addend', hitsAddend, 0, numberMax);
  descriptors.forEach(checkOwnNumbers);
}

function checkOwnNumbers({ limit, hitsAddend: hits = 0 }: Descriptor, index: number): void {
  if (hits !== 0) requireNumber(`descriptors[${index}].hits_addend`, hits, 0, ownHitsMax);
  if (limit !== undefined) checkLimit(`descriptors[${index}].limit`, limit);
}

function checkLimit(name: string, { requestsPerUnit, unit, unitMultiplier = 1 }: LimitOverride): void {
  if (unit === undefined) throw new InvalidRequest(`${name} has no unit`);
  requireNumber(`${name}.requests_per_unit`, requestsPerUnit, 0, numberMax);
  requireNumber(`${name}.unit_multiplier`, unitMultiplier, 1, unitMultiplierMax);
}

function requireNumber(name: string, value: number, min: number, max: number): void {
  if (Number.isInteger(value) && value >= min && value <= max) return;
  throw new InvalidRequest(`${name} must be a whole number from ${min} to ${max}`);
}

/** Throws an `InvalidRequest` that names the first bound of `requestBounds` that the request exceeds. */
export function checkBounds({ domain, descriptors }: RateLimitRequest): void {
  if (domain.length > requestBounds.domain) throw tooMuch('domain', domain.length, 'characters', requestBounds.domain);
  if (descriptors.length > requestBounds.descriptors)
    throw tooMuch('descriptors', descriptors.length, 'descriptors', requestBounds.descriptors);
  descriptors.forEach(checkDescriptor);
}

function checkDescriptor({ entries }: Descriptor, index: number): void {
  if (entries.length > requestBounds.entries)
    throw tooMuch(`descriptors[${index}].entries`, entries.length, 'entries', requestBounds.entries);
  const refused = entries.findIndex(isTooLong);
  if (refused === -1) return;
  const { key = '', value = '' } = entries[refused] ?? {};
  const name = `descriptors[${index}].entries[${refused}]`;
  if (key.length > requestBounds.key) throw tooMuch(`${name}.key`, key.length, 'characters', requestBounds.key);
  throw tooMuch(`${name}.value`, value.length, 'characters', requestBounds.value);
}

function isTooLong({ key, value }: Entry): boolean {
  return key.length > requestBounds.key || value.length > requestBounds.value;
}

function tooMuch(name: string, length: number, what: string, max: number): InvalidRequest {
  return new InvalidRequest(`${name} has ${length} ${what}, more than ${max}`);
}
