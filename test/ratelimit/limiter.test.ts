/** Validation of requests, and the error messages for invalid ones. */
import assert from 'node:assert/strict';
import { InvalidRequest, type RateLimitRequest } from '#ratelimit';
import type { requestBounds } from '#ratelimit/limit';
import { checkBounds, checkRequest } from '../../src/ratelimit/limiter.ts';
import { descriptor } from '../support/limits.ts';

/** `expected` is the error message, or undefined if the request is valid. */
function checkBy(judge: typeof checkBounds, request: Partial<RateLimitRequest>, expected?: string): void {
  const act = () => judge({ domain: 'd', descriptors: [], ...request });
  if (expected === undefined) act();
  else assert.throws(act, new InvalidRequest(expected));
}

describe('the validation of a request', () => {
  /** Checks a request whose second descriptor has the members of `own`. */
  const check = (own: object, expected?: string) =>
    checkBy(
      checkRequest,
      { descriptors: [descriptor('a=b'), { ...descriptor('k=v'), ...own }] },
      expected && `descriptors[1].${expected}`,
    );
  const uint32 = 'must be a whole number from 0 to 4294967295';

  it('requires the hits of a request to fit 32 bits, and those of a descriptor 64 bits, unsigned', () => {
    const uint64 = `must be a whole number from 0 to ${2 ** 64}`;
    for (const hitsAddend of [0, 1, 4_294_967_295]) {
      checkBy(checkRequest, { hitsAddend });
      check({ hitsAddend });
    }
    check({ hitsAddend: 4_294_967_296 });
    // A double cannot tell 2^64 - 1 from 2^64.
    check({ hitsAddend: 2 ** 64 });
    checkBy(checkRequest, { hitsAddend: 4_294_967_296 }, `hits_addend ${uint32}`);
    check({ hitsAddend: 2 ** 65 }, `hits_addend ${uint64}`);
    for (const hitsAddend of [-1, 0.5, Number.NaN]) {
      checkBy(checkRequest, { hitsAddend }, `hits_addend ${uint32}`);
      check({ hitsAddend }, `hits_addend ${uint64}`);
    }
  });

  it('requires the limit of a descriptor to have a unit and numbers in range', () => {
    const limit = { requestsPerUnit: 1, unit: 'minute' };
    for (const unitMultiplier of [undefined, 1_000]) check({ limit: { ...limit, unitMultiplier } });
    check({ limit: { ...limit, unit: undefined } }, 'limit has no unit');
    check({ limit: { ...limit, requestsPerUnit: -1 } }, `limit.requests_per_unit ${uint32}`);
    for (const unitMultiplier of [0, 1_001])
      check({ limit: { ...limit, unitMultiplier } }, 'limit.unit_multiplier must be a whole number from 1 to 1000');
  });
});

describe('the bounds of a request from the network', () => {
  const list = (length: number) => Array.from({ length }, () => 'k=v');
  const entry = (key: number, value: number) => ({
    descriptors: [{ entries: [{ key: 'x'.repeat(key), value: 'x'.repeat(value) }] }],
  });
  const requestWith: Readonly<Record<keyof typeof requestBounds, (size: number) => Partial<RateLimitRequest>>> = {
    domain: (size) => ({ domain: 'x'.repeat(size) }),
    descriptors: (size) => ({ descriptors: list(size).map((one) => descriptor(one)) }),
    entries: (size) => ({ descriptors: [descriptor(...list(size))] }),
    key: (size) => entry(size, 0),
    value: (size) => entry(1, size),
  };

  for (const [bound, max, message] of [
    ['domain', 256, 'domain has 257 characters, more than the maximum of 256'],
    ['descriptors', 64, 'descriptors has 65 descriptors, more than the maximum of 64'],
    ['entries', 32, 'descriptors[0].entries has 33 entries, more than the maximum of 32'],
    ['key', 256, 'descriptors[0].entries[0].key has 257 characters, more than the maximum of 256'],
    ['value', 65_536, 'descriptors[0].entries[0].value has 65537 characters, more than the maximum of 65536'],
  ] as const)
    it(`limit its ${bound} to ${max}`, () => {
      checkBy(checkBounds, requestWith[bound](max));
      checkBy(checkBounds, requestWith[bound](max + 1), message);
    });
});
