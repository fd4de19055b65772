/** Requests that no limiter answers, and what they are told. */
import assert from 'node:assert/strict';
import { InvalidRequest, type RateLimitRequest } from '#ratelimit';
import { checkBounds, checkRequest, requestBounds } from '../../src/ratelimit/check-request.ts';
import { descriptor } from './build-limits.ts';

describe('a request', () => {
  function check(request: Partial<RateLimitRequest>, expected: RegExp | undefined): void {
    const act = () => checkRequest({ domain: 'd', descriptors: [], ...request });
    if (expected === undefined) act();
    else assert.throws(act, (error) => error instanceof InvalidRequest && expected.test(error.message));
  }

  it('needs a domain', () => {
    check({}, undefined);
    check({ domain: '' }, /^domain must not be empty$/);
  });

  it('has an unsigned 32-bit number of hits, if any', () => {
    check({ hitsAddend: 0 }, undefined);
    check({ hitsAddend: 4_294_967_295 }, undefined);
    for (const hitsAddend of [-1, 0.5, Number.NaN, 4_294_967_296]) check({ hitsAddend }, /^hits_addend must be/);
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
