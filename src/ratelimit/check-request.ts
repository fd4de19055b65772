/** What a request must be to be answered. */
import { InvalidRequest } from './invalid-request.ts';
import type { Descriptor, RateLimitRequest } from './limiter.ts';

/**
 * The most that a request from the network may hold; lengths in UTF-16 code units. A value may be as long as a whole
 * header block: a gateway that fails open would wave through a client whose header the service refuses.
 */
export const requestBounds = Object.freeze({ domain: 256, descriptors: 64, entries: 32, key: 256, value: 16_384 });

const hitsMax = 4_294_967_295;

/** Throws an `InvalidRequest` for an empty domain and for hits that are no unsigned 32-bit number. */
export function checkRequest({ domain, hitsAddend = 0 }: RateLimitRequest): void {
  if (domain === '') throw new InvalidRequest('domain must not be empty');
  if (Number.isInteger(hitsAddend) && hitsAddend >= 0 && hitsAddend <= hitsMax) return;
  throw new InvalidRequest(`hits_addend must be a whole number from 0 to ${hitsMax}`);
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
  entries.forEach(({ key, value }, position) => {
    if (key.length > requestBounds.key)
      throw tooMuch(`descriptors[${index}].entries[${position}].key`, key.length, 'characters', requestBounds.key);
    if (value.length > requestBounds.value)
      throw tooMuch(
        `descriptors[${index}].entries[${position}].value`,
        value.length,
        'characters',
        requestBounds.value,
      );
  });
}

function tooMuch(name: string, length: number, what: string, max: number): InvalidRequest {
  return new InvalidRequest(`${name} has ${length} ${what}, more than ${max}`);
}
