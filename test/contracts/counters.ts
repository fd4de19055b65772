/** The contract of all counters, in this process or shared by many. */
import assert from 'node:assert/strict';
import type { Algorithm } from '#config';
import type { Counters, Hit, HitResult, TakeOptions } from '#ratelimit';

export interface OpenCounters {
  readonly counters: Counters;
  close(): Promise<void>;
}

const year = 365 * 86_400;

/** A limit whose window lasts a year, so that the contract does not depend on the time. */
export function hitOf(key: string, more: Partial<Hit> = {}): Hit {
  const limit = more.limit ?? 10;
  return { key, algorithm: 'fixed_window', windowSeconds: year, limit, burst: limit, hits: 1, shadow: false, ...more };
}

const algorithms: readonly Algorithm[] = ['fixed_window', 'sliding_window', 'token_bucket'];

/** `open` must give counters with nothing counted yet. */
export function countersContract(name: string, open: () => Promise<OpenCounters>): void {
  for (const algorithm of algorithms) {
    describe(`counters ${name}, ${algorithm}`, () => {
      let opened: OpenCounters;
      beforeEach(async () => {
        opened = await open();
      });
      afterEach(() => opened.close());

      const hit = (key: string, more: Partial<Hit> = {}) => hitOf(key, { algorithm, ...more });
      const take = async (hits: readonly Hit[], options?: TakeOptions): Promise<readonly HitResult[]> =>
        opened.counters.take(hits, options);
      const summary = (results: readonly HitResult[]) =>
        results.map(({ over, remaining }) => `${over ? 'over' : 'ok'} ${remaining}`);
      const check = async (hits: readonly Hit[], expected: readonly string[], options?: TakeOptions) =>
        assert.deepEqual(summary(await take(hits, options)), expected);

      it('admit exactly the limit, and say what remains', async () => {
        for (const expected of ['ok 2', 'ok 1', 'ok 0', 'over 0', 'over 0'])
          await check([hit('a', { limit: 3 })], [expected]);
      });

      it('return no result without a hit', async () => check([], []));

      it('keep keys apart', async () => {
        await check([hit('a', { limit: 1 }), hit('b', { limit: 1 })], ['ok 0', 'ok 0']);
        await check([hit('b', { limit: 1 })], ['over 0']);
        await check([hit('ä:{b}', { limit: 1 })], ['ok 0']);
      });

      it('count nothing of a request that one limit denies', async () => {
        await check([hit('spent', { limit: 1 })], ['ok 0']);
        for (let count = 0; count < 3; count += 1)
          await check([hit('free', { limit: 5 }), hit('spent', { limit: 1 })], ['ok 5', 'over 0']);
        await check([hit('free', { limit: 5 })], ['ok 4']);
      });

      it('count what fits of a denied request with `countDenied`', async () => {
        const options = { countDenied: true };
        await check([hit('spent', { limit: 1 })], ['ok 0'], options);
        await check([hit('spent', { limit: 1 }), hit('free', { limit: 5 })], ['over 0', 'ok 4'], options);
        await check([hit('free', { limit: 5, hits: 9 })], ['over 0'], options);
        await check([hit('free', { limit: 5 })], ['over 0']);
      });

      it('decide the second of two hits on one key by what the first has left', async () => {
        const twice = (limit: number) => [hit(`a${limit}`, { limit }), hit(`a${limit}`, { limit })];
        await check(twice(2), ['ok 0', 'ok 0']);
        await check(twice(1), ['ok 1', 'over 1']);
        await check([hit('a1', { limit: 1 })], ['ok 0']);
      });

      it('count a hit of more than one, and nothing of it when only a part fits', async () => {
        const expected = [
          [11, 'over 10'],
          [8, 'ok 2'],
          [3, 'over 2'],
          [2, 'ok 0'],
        ] as const;
        for (const [hits, result] of expected) await check([hit('a', { hits })], [result]);
      });

      it('count nothing for a hit of 0, and never deny it, but every other at a limit of 0', async () => {
        const expected = [
          [1, 0, 'ok 1'],
          [1, 1, 'ok 0'],
          [1, 0, 'ok 0'],
          [0, 1, 'over 0'],
          [0, 0, 'ok 0'],
        ] as const;
        for (const [limit, hits, result] of expected) await check([hit(`a${limit}`, { limit, hits })], [result]);
      });

      it('do not deny because of a limit in shadow mode', async () => {
        const shadow = hit('shadow', { limit: 1, shadow: true });
        await check([shadow, hit('free')], ['ok 0', 'ok 9']);
        await check([shadow, hit('free')], ['over 0', 'ok 8']);
      });

      it('count what fits in shadow mode, although the request is denied', async () => {
        await check([hit('spent', { limit: 1 })], ['ok 0']);
        const shadow = (hits: number) => hit('shadow', { limit: 5, hits, shadow: true });
        await check([shadow(2), hit('spent', { limit: 1 })], ['ok 3', 'over 0']);
        await check([shadow(4)], ['over 0']);
      });

      it('apply a limit that is raised or lowered', async () => {
        await check([hit('a', { limit: 2, hits: 2 })], ['ok 0']);
        await check([hit('a', { limit: 1 })], ['over 0']);
        if (algorithm !== 'token_bucket') await check([hit('a', { limit: 4 })], ['ok 1']);
      });

      it('say how long to wait, in whole seconds', async () => {
        for (const hits of [1, 9, 1, 11]) {
          const [result] = await take([hit('a', { hits })]);
          assert.ok(Number.isInteger(result?.resetSeconds) && (result?.resetSeconds ?? 0) >= 1);
          assert.ok((result?.resetSeconds ?? 0) <= 2 * year);
        }
      });

      it('admit exactly the limit of many requests at once', async () => {
        const results = await Promise.all(Array.from({ length: 50 }, () => take([hit('a')])));
        assert.equal(results.filter(([result]) => result?.over === false).length, 10);
      });
    });
  }

  describe(`counters ${name}`, () => {
    let opened: OpenCounters;
    beforeEach(async () => {
      opened = await open();
    });
    afterEach(() => opened.close());
    const bucket = (hits: number) =>
      hitOf('bucket', { algorithm: 'token_bucket', windowSeconds: 86_400, limit: 2, burst: 5, hits });

    it('say of a token bucket when the next hit fits, and when it is full again', async () => {
      const isAbout = (seconds: number | undefined, expected: number) =>
        assert.ok(seconds !== undefined && seconds <= expected && seconds > expected - 600, `${seconds}`);
      isAbout((await opened.counters.take([bucket(5)]))[0]?.resetSeconds, 5 * 43_200);
      isAbout((await opened.counters.take([bucket(2)]))[0]?.resetSeconds, 2 * 43_200);
      isAbout((await opened.counters.take([bucket(6)]))[0]?.resetSeconds, 5 * 43_200);
    });

    it('take hits of several algorithms in one request', async () => {
      const mixed = algorithms.map((algorithm) => hitOf(algorithm, { algorithm, limit: 2 }));
      for (const expected of [false, false, true])
        assert.deepEqual(
          (await opened.counters.take(mixed)).map(({ over }) => over),
          [expected, expected, expected],
        );
    });
  });
}
