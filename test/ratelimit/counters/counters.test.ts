/** The failure policy while counters cannot be reached: open or closed. */
import assert from 'node:assert/strict';
import { type Counters, type Hit, type HitResult, withFailurePolicy } from '#ratelimit';
import { hitOfThree as hit } from '../../support/limits.ts';

const counted: HitResult = { over: false, remaining: 1, resetSeconds: 30 };

describe('the failure policy', () => {
  let isDown: boolean;
  let reported: unknown[];
  let errors: unknown[];
  let results: readonly HitResult[];
  const away = new Error('away');
  const outage = {
    failed: (error: unknown) => void reported.push(error),
    succeeded: () => void reported.push('succeeded'),
  };

  beforeEach(() => {
    isDown = true;
    reported = [];
    errors = [];
    results = [counted];
  });

  function create(failOpen: boolean, counters: Partial<Counters> = {}): Counters {
    const take = async () => {
      if (isDown) throw away;
      return results;
    };
    const onError = (error: unknown) => void errors.push(error);
    return withFailurePolicy({ take, ...counters }, { failOpen, outage, onError });
  }

  it('when open, lets requests pass without a remainder, except hits that exceed a whole limit', async () => {
    const check = async (changes: Partial<Hit>, over: boolean) =>
      assert.deepEqual(await create(true).take([hit(changes)]), [
        { over, remaining: 0, resetSeconds: 1, isUncounted: true },
      ]);
    await check({}, false);
    await check({ hits: 3 }, false);
    await check({ algorithm: 'token_bucket', burst: 9 }, false);
    await check({ limit: 0, burst: 0 }, true);
    await check({ hits: 4 }, true);
    await check({ algorithm: 'token_bucket', limit: 0, burst: 9 }, true);
  });

  it('when closed, rejects requests and reports the outage', async () => {
    const counters = create(false);
    for (const _ of [1, 2])
      await assert.rejects(async () => counters.take([hit()]), { name: 'CountersUnavailable', cause: away });
    assert.deepEqual(reported, [away, away]);
  });

  it('reports every failure and every success', async () => {
    const counters = create(true);
    for (const _ of [1, 2, 3]) await counters.take([hit()]);
    isDown = false;
    for (const _ of [1, 2]) assert.deepEqual(await counters.take([hit()]), [counted]);
    assert.deepEqual(errors, [away, away, away]);
    assert.deepEqual(reported, [away, away, away, 'succeeded', 'succeeded']);
  });

  it('does not treat a cached result as the end of an outage', async () => {
    const counters = create(true);
    await counters.take([hit()]);
    isDown = false;
    results = [{ ...counted, over: true, fromCache: true }];
    await counters.take([hit()]);
    assert.deepEqual(reported, [away]);
  });

  it('returns results synchronously if the counters do', () => {
    const counters = create(true, { take: () => [counted] });
    assert.deepEqual(counters.take([hit()]), [counted]);
  });
});
