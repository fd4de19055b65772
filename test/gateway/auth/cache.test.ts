/** The cache of an auth service's decisions, which apply only to identical requests and expire. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import type { AuthDecision } from '#auth';
import { createAuthCache, mayBeCached } from '../../../src/gateway/auth/cache.ts';
import type { CheckRequest } from '../../../src/gateway/auth/check-request.ts';

const allow: AuthDecision = { outcome: 'allow', headers: { 'x-travel-user': 'demo' } };
const question: CheckRequest = { method: 'GET', path: '/v1/hotels?a', headers: ['authorization', 'Basic eA=='] };

describe('cached decisions', () => {
  it('expire after their time', () => {
    let nowMs = 0;
    const cache = createAuthCache({ ttlMs: 100, clock: () => nowMs });
    cache.remember(question, allow, 0);
    nowMs = 99;
    assert.equal(cache.recall(question), allow);
    nowMs = 100;
    assert.equal(cache.recall(question), undefined);
    nowMs = 0;
    assert.equal(cache.recall(question), undefined);
  });

  it('expire earlier if the service took long to decide', () => {
    let nowMs = 60;
    const cache = createAuthCache({ ttlMs: 100, clock: () => nowMs });
    cache.remember(question, allow, 0);
    assert.equal(cache.recall(question), allow);
    nowMs = 100;
    assert.equal(cache.recall(question), undefined);
  });

  it('do not live longer when used', () => {
    let nowMs = 0;
    const cache = createAuthCache({ ttlMs: 100, clock: () => nowMs });
    cache.remember(question, allow, 0);
    for (nowMs = 0; nowMs < 100; nowMs += 10) assert.equal(cache.recall(question), allow);
    assert.equal(cache.recall(question), undefined);
  });

  it('are bounded in number, and the least recently used one is evicted', () => {
    const cache = createAuthCache({ ttlMs: 100, entriesMax: 2, clock: () => 0 });
    const at = (path: string) => ({ ...question, path });
    cache.remember(at('/a'), allow, 0);
    cache.remember(at('/b'), allow, 0);
    cache.recall(at('/a'));
    cache.remember(at('/c'), allow, 0);
    assert.deepEqual(
      ['/a', '/b', '/c'].map((path) => cache.recall(at(path))),
      [allow, undefined, allow],
    );
  });

  it('ignore the request and trace ids', () => {
    const cache = createAuthCache({ ttlMs: 100, clock: () => 0 });
    const withId = (id: string) => {
      const ids = ['x-request-id', id, 'traceparent', id, ...(id === '2' ? ['tracestate', id] : [])];
      return { ...question, headers: [...question.headers, ...ids] };
    };
    cache.remember(withId('1'), allow, 0);
    assert.equal(cache.recall(withId('2')), allow);
  });

  it('apply only to identical requests', () => {
    const text = fc.string({ unit: fc.constantFrom('a', 'b', ',', '"', '\n', '[') });
    const pairs = fc.array(fc.tuple(fc.constantFrom('cookie', 'authorization', 'x-a'), text)).map((all) => all.flat());
    const questions = fc.record({ method: fc.constantFrom('GET', 'PUT'), path: text, headers: pairs });
    fc.assert(
      fc.property(questions, questions, (one, other) => {
        const cache = createAuthCache({ ttlMs: 100, clock: () => 0 });
        cache.remember(one, allow, 0);
        const isSame = JSON.stringify(one) === JSON.stringify(other);
        assert.equal(cache.recall(other), isSame ? allow : undefined);
      }),
    );
  });
});

describe('a positive response', () => {
  function check(headers: Parameters<typeof mayBeCached>[0], expected: boolean) {
    it(`${expected ? 'may' : 'must not'} be cached with ${JSON.stringify(headers)}`, () =>
      assert.equal(mayBeCached(headers), expected));
  }

  check({}, true);
  check({ 'cache-control': 'private, max-age=60' }, true);
  check({ 'cache-control': 'No-Store' }, false);
  check({ 'cache-control': 'private, no-cache' }, false);
  check({ 'cache-control': 'max-age=0' }, false);
  check({ 'cache-control': 'max-age=01' }, true);
  check({ 'set-cookie': ['a=1'] }, false);
});
