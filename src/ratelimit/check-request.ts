/** What a request must be to be answered. */
import { InvalidRequest } from './invalid-request.ts';
import type { Descriptor, Entry, RateLimitRequest } from './limiter.ts';

/** The most that a request from the network may hold; lengths in UTF-16 code units. */
export const requestBounds = Object.freeze({
  domain: 256,
  descriptors: 64,
  entries: 32,
  key: 256,
  value: 4_096,
});

const hitsMax = 4_294_967_295;

/** Throws an `InvalidRequest` for an empty domain and for hits that are no unsigned 32-bit number. */
export function checkRequest({ domain, hitsAddend = 0 }: RateLimitRequest): void {
  if (domain === '') throw new InvalidRequest('domain must not be empty');
  if (Number.isInteger(hitsAddend) && hitsAddend >= 0 && hitsAddend <= hitsMax) return;
  throw new InvalidRequest(`hits_addend must be a whole number from 0 to ${hitsMax}`);
}

/** Throws an `InvalidRequest` that names the first bound of `requestBounds` that the request exceeds. */
export function checkBounds({ domain, descriptors }: RateLimitRequest): void {
  checkLength('domain', domain.length, requestBounds.domain, 'characters');
  checkLength('descriptors', descriptors.length, requestBounds.descriptors, 'descriptors');
  descriptors.forEach(checkDescriptor);
}

function checkDescriptor({ entries }: Descriptor, index: number): void {
  const name = `descriptors[${index}].entries`;
  checkLength(name, entries.length, requestBounds.entries, 'entries');
  entries.forEach((entry, position) => {
    checkEntry(entry, `${name}[${position}]`);
  });
}

function checkEntry({ key, value }: Entry, name: string): void {
  checkLength(`${name}.key`, key.length, requestBounds.key, 'characters');
  checkLength(`${name}.value`, value.length, requestBounds.value, 'characters');
}

function checkLength(name: string, length: number, max: number, what: string): void {
  if (length > max) throw new InvalidRequest(`${name} has ${length} ${what}, more than ${max}`);
}
