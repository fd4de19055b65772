/** Requests that no limiter answers, and why. */
import assert from 'node:assert/strict';
import { type Descriptor, InvalidRequest, type RateLimitRequest } from '#ratelimit';
import { checkBounds, checkRequest, requestBounds } from '../../src/ratelimit/check-request.ts';
import { descriptor } from '../support/limits.ts';

describe('a request', () => {
  function check(hitsAddend: number | undefined, expected: RegExp | undefined): void {
    const act = () => checkRequest({ domain: 'd', descriptors: [], ...(hitsAddend !== undefined && { hitsAddend }) });
    if (expected === undefined) act();
    else assert.throws(act, (error) => error instanceof InvalidRequest && expected.test(error.message));
  }

  it('has an unsigned 32-bit number of hits, if any', () => {
    for (const hitsAddend of [undefined, 0, 4_294_967_295]) check(hitsAddend, undefined);
    for (const hitsAddend of [-1, 0.5, Number.NaN, 4_294_967_296]) check(hitsAddend, /^hits_addend must be/);
  });
});

describe('a descriptor of a request', () => {
  function check(own: Partial<Descriptor>, expected: string | undefined): void {
    const act = () => checkRequest({ domain: 'd', descriptors: [descriptor('a=b'), { ...descriptor('k=v'), ...own }] });
    if (expected === undefined) act();
    else assert.throws(act, new InvalidRequest(`descriptors[1].${expected}`));
  }
  const limit = { requestsPerUnit: 1, unit: 'minute' } as const;

  it('has an unsigned 32-bit number of hits, if any', () => {
    for (const hitsAddend of [0, 1, 4_294_967_295]) check({ hitsAddend }, undefined);
    for (const hitsAddend of [-1, 0.5, Number.NaN, 4_294_967_296])
      check({ hitsAddend }, 'hits_addend must be a whole number from 0 to 4294967295');
  });

  it('has a limit with a unit and numbers within reason, if any', () => {
    check({ limit }, undefined);
    check({ limit: { ...limit, unitMultiplier: 1_000 } }, undefined);
    check({ limit: { ...limit, unit: undefined } }, 'limit has no unit');
    check(
      { limit: { ...limit, requestsPerUnit: -1 } },
      'limit.requests_per_unit must be a whole number from 0 to 4294967295',
    );
    for (const unitMultiplier of [0, 1_001])
      check({ limit: { ...limit, unitMultiplier } }, 'limit.unit_multiplier must be a whole number from 1 to 1000');
  });
});

describe('the bounds of a request from the network', () => {
  function check(request: Partial<RateLimitRequest>, expected: string | undefined): void {
    const act = () => checkBounds({ domain: 'd', descriptors: [], ...request });
    if (expected === undefined) act();
    else assert.throws(act, new InvalidRequest(expected));
  }
  const many = (count: number) => Array.from({ length: count }, () => 'k=v');
  const entry = (key: string, value: string) => ({ descriptors: [{ entries: [{ key, value }] }] });

  it('admit what is just within', () => {
    check({ domain: 'x'.repeat(requestBounds.domain) }, undefined);
    check({ descriptors: many(requestBounds.descriptors).map((one) => descriptor(one)) }, undefined);
    check({ descriptors: [descriptor(...many(requestBounds.entries))] }, undefined);
    check(entry('x'.repeat(requestBounds.key), 'x'.repeat(requestBounds.value)), undefined);
  });

  it('are named when exceeded', () => {
    check({ domain: 'x'.repeat(257) }, 'domain has 257 characters, more than 256');
    check({ descriptors: many(65).map((one) => descriptor(one)) }, 'descriptors has 65 descriptors, more than 64');
    check({ descriptors: [descriptor(...many(33))] }, 'descriptors[0].entries has 33 entries, more than 32');
    check(entry('x'.repeat(257), ''), 'descriptors[0].entries[0].key has 257 characters, more than 256');
    check(entry('k', 'x'.repeat(16_385)), 'descriptors[0].entries[0].value has 16385 characters, more than 16384');
  });
});
