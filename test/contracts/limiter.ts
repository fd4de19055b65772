/** The contract of all limiters, in-process and over gRPC. */
import assert from 'node:assert/strict';
import type { LimitDomain } from '#config';
import { createLimiter, createMemoryCounters, InvalidRequest, type Limiter, type RateLimitRequest } from '#ratelimit';
import { descriptor, domain, limit, node, unlimited } from '../support/limits.ts';

export interface OpenLimiter {
  readonly limiter: Limiter;
  close(): Promise<void>;
}

/** The optional fields that the protocol supports. */
export interface ProtocolFeatures {
  readonly resetSeconds: boolean;
  readonly name: boolean;
  /** Limits and hits per descriptor, and windows of several units. */
  readonly override: boolean;
}

const limits: readonly LimitDomain[] = [
  domain(
    'shop',
    node('user', limit(2, 'minute', { name: 'per user' })),
    node('user=vip', unlimited),
    node('tier', limit(3, 'week')),
    node('closed', limit(0, 'second')),
    node('listed'),
    node('path=/v1/*', limit(2, 'hour')),
    { ...node('path=/shared/*', limit(2, 'hour')), shareThreshold: true },
    node('watched', limit(1, 'hour', { shadowMode: true })),
    node('quota=a', limit(1, 'hour', { quotaMode: true })),
    node('quota=b', limit(3, 'hour', { quotaMode: true })),
    node('steady', limit(1, 'hour', { algorithm: 'token_bucket', burst: 2 })),
    node('smooth', limit(2, 'hour', { algorithm: 'sliding_window' })),
    node('often', [limit(3, 'second', { unitMultiplier: 30 }), limit(4, 'hour')]),
  ),
];

/**
 * `open` makes the given limiter available over the transport under test. In each test it has the limits above, no
 * hits, and a clock 15 seconds before the full minute.
 */
export function limiterContract(
  name: string,
  supports: ProtocolFeatures,
  open: (limiter: Limiter) => Promise<OpenLimiter>,
): void {
  describe(`limiter (${name})`, () => {
    const time = { nowMs: 0 };
    let limiter: Limiter;
    let opened: OpenLimiter;

    before(async () => {
      opened = await open({ shouldRateLimit: (request) => limiter.shouldRateLimit(request) });
    });
    after(() => opened.close());
    beforeEach(() => {
      time.nowMs = 45_000;
      limiter = createLimiter({ limits, counters: createMemoryCounters({ clock: () => time.nowMs }) });
    });

    const ask = async (...descriptors: string[]) =>
      opened.limiter.shouldRateLimit({
        domain: 'shop',
        descriptors: descriptors.map((one) => descriptor(...one.split(' '))),
      });
    const codes = async (...descriptors: string[]) => {
      const { overallCode, statuses } = await ask(...descriptors);
      return [overallCode, ...statuses.map(({ code }) => code)];
    };

    it('admits up to the limit and reports the limit, the remaining hits and the seconds until the reset', async () => {
      const status = {
        code: 'OK',
        currentLimit: {
          requestsPerUnit: 2,
          unit: 'minute',
          windowSeconds: 60,
          name: supports.name ? 'per user' : undefined,
        },
        limitRemaining: 1,
        resetSeconds: supports.resetSeconds ? 15 : undefined,
      };
      assert.deepEqual(await ask('user=ann'), { overallCode: 'OK', statuses: [status] });
      assert.deepEqual(await ask('user=ann'), { overallCode: 'OK', statuses: [{ ...status, limitRemaining: 0 }] });
      assert.deepEqual(await ask('user=ann'), {
        overallCode: 'OVER_LIMIT',
        statuses: [{ ...status, code: 'OVER_LIMIT', limitRemaining: 0 }],
      });
    });

    it('admits again in the next window', async () => {
      for (const expected of ['OK', 'OK', 'OVER_LIMIT']) assert.equal((await codes('user=ann'))[0], expected);
      time.nowMs += 15_000;
      assert.equal((await codes('user=ann'))[0], 'OK');
    });

    it('returns statuses in the order of the descriptors, and denies when one of them is over its limit', async () => {
      assert.deepEqual(await codes('listed=x', 'closed=x', 'user=ann'), ['OVER_LIMIT', 'OK', 'OVER_LIMIT', 'OK']);
    });

    it('does not count the hits of a denied request', async () => {
      for (let count = 0; count < 5; count += 1) await ask('tier=gold', 'closed=x');
      assert.equal((await ask('tier=gold')).statuses[0]?.limitRemaining, 2);
    });

    it('counts each value of a wildcard separately, or all together with a shared threshold', async () => {
      const remaining = async (at: string) => (await ask(at)).statuses[0]?.limitRemaining;
      assert.deepEqual([await remaining('path=/v1/a'), await remaining('path=/v1/b')], [1, 1]);
      assert.deepEqual([await remaining('path=/shared/a'), await remaining('path=/shared/b')], [1, 0]);
    });

    it('reports the hits remaining after the whole request for each of several equal descriptors', async () => {
      const { statuses } = await ask('tier=gold', 'tier=gold');
      assert.deepEqual(
        statuses.map(({ limitRemaining }) => limitRemaining),
        [1, 1],
      );
    });

    it('counts in shadow mode but never denies', async () => {
      for (let count = 0; count < 3; count += 1) assert.deepEqual(await codes('watched=x'), ['OK', 'OK']);
    });

    it('denies when any limit is exhausted, except that quotas deny only when all of them are exhausted', async () => {
      const quotas = ['quota=a', 'quota=b', 'listed=x'];
      assert.deepEqual(await codes(...quotas), ['OK', 'OK', 'OK', 'OK']);
      assert.deepEqual(await codes(...quotas), ['OK', 'OVER_LIMIT', 'OK', 'OK']);
      assert.deepEqual(await codes(...quotas, 'closed=x'), ['OVER_LIMIT', 'OVER_LIMIT', 'OK', 'OK', 'OVER_LIMIT']);
      assert.deepEqual(await codes(...quotas), ['OK', 'OVER_LIMIT', 'OK', 'OK']);
      assert.deepEqual(await codes(...quotas), ['OVER_LIMIT', 'OVER_LIMIT', 'OVER_LIMIT', 'OK']);
    });

    it('supports token buckets with a burst, and sliding windows', async () => {
      for (const at of ['steady=x', 'smooth=x'])
        for (const expected of ['OK', 'OK', 'OVER_LIMIT']) assert.equal((await codes(at))[0], expected);
      time.nowMs += 3_600_000;
      assert.deepEqual([(await codes('steady=x'))[0], (await codes('steady=x'))[0]], ['OK', 'OVER_LIMIT']);
    });

    it('applies several limits of one descriptor', async () => {
      for (const expected of ['OK', 'OK', 'OK', 'OVER_LIMIT']) assert.equal((await codes('often=x'))[0], expected);
      time.nowMs += 30_000;
      assert.deepEqual([(await codes('often=x'))[0], (await codes('often=x'))[0]], ['OK', 'OVER_LIMIT']);
    });

    if (supports.override) {
      it('reports the length of a window of several units', async () => {
        const { currentLimit } = (await ask('often=x')).statuses[0] ?? {};
        assert.deepEqual([currentLimit?.unitMultiplier, currentLimit?.windowSeconds], [30, 30]);
      });

      it('lets a descriptor override the limit and the hits', async () => {
        const own = { requestsPerUnit: 5, unit: 'day' as const };
        const descriptors = [{ ...descriptor('tier=gold'), limit: own, hitsAddend: 3 }];
        const send = () => opened.limiter.shouldRateLimit({ domain: 'shop', descriptors });
        const [status] = (await send()).statuses;
        assert.deepEqual([status?.limitRemaining, status?.currentLimit?.unit], [2, 'day']);
        assert.equal((await send()).overallCode, 'OVER_LIMIT');
        const both = { domain: 'shop', descriptors: [...descriptors, { ...descriptor('k=v'), limit: own }] };
        assert.equal((await opened.limiter.shouldRateLimit(both)).overallCode, 'OVER_LIMIT');
        const none = [{ ...descriptor('tier=gold'), hitsAddend: 0 }];
        const unhit = await opened.limiter.shouldRateLimit({ domain: 'shop', descriptors: none });
        assert.equal(unhit.statuses[0]?.limitRemaining, 3);
        assert.equal((await ask('tier=gold')).statuses[0]?.limitRemaining, 2);
      });

      it('denies a descriptor with more hits than any limit can allow', async () => {
        for (const hitsAddend of [4_294_967_296, Number.MAX_SAFE_INTEGER]) {
          const descriptors = [{ ...descriptor('tier=gold'), hitsAddend }];
          const { overallCode, statuses } = await opened.limiter.shouldRateLimit({ domain: 'shop', descriptors });
          assert.deepEqual([overallCode, statuses[0]?.limitRemaining], ['OVER_LIMIT', 3]);
        }
      });

      it('denies a request with zero hits once the limit is exhausted, without using up any hits', async () => {
        for (const at of ['tier=gold', 'steady=x', 'smooth=x']) {
          const look = async () => {
            const descriptors = [{ ...descriptor(at), hitsAddend: 0 }];
            const { overallCode, statuses } = await opened.limiter.shouldRateLimit({ domain: 'shop', descriptors });
            return [overallCode, statuses[0]?.limitRemaining];
          };
          while ((await ask(at)).statuses[0]?.limitRemaining !== 1);
          assert.deepEqual([await look(), await look()], Array(2).fill(['OK', 1]));
          assert.deepEqual(await codes(at), ['OK', 'OK']);
          assert.deepEqual([await look(), await look()], Array(2).fill(['OVER_LIMIT', 0]));
        }
      });

      it('keeps the count of a limit that the request sets when its number changes, but not when its unit changes', async () => {
        const left = async (requestsPerUnit: number, unit: 'minute' | 'hour') => {
          const descriptors = [{ ...descriptor('k=v'), limit: { requestsPerUnit, unit } }];
          return (await opened.limiter.shouldRateLimit({ domain: 'unknown', descriptors })).statuses[0]?.limitRemaining;
        };
        assert.deepEqual([await left(5, 'hour'), await left(9, 'hour'), await left(5, 'minute')], [4, 7, 4]);
      });

      it('counts a limit that the request sets in windows of several units', async () => {
        const limitOfTwo = { requestsPerUnit: 2, unit: 'minute', unitMultiplier: 5 } as const;
        const one = async () => {
          const descriptors = [{ ...descriptor('k=v'), limit: limitOfTwo }];
          const [status] = (await opened.limiter.shouldRateLimit({ domain: 'unknown', descriptors })).statuses;
          return [status?.code, status?.currentLimit?.windowSeconds, status?.currentLimit?.unitMultiplier];
        };
        assert.deepEqual(await one(), ['OK', 300, 5]);
        assert.deepEqual(await one(), ['OK', 300, 5]);
        time.nowMs += 60_000;
        assert.deepEqual(await one(), ['OVER_LIMIT', 300, 5]);
      });

      it('gives nothing back and never denies if a descriptor gives back 0 hits', async () => {
        for (const expected of ['OK', 'OK', 'OVER_LIMIT']) assert.equal((await codes('user=ann'))[0], expected);
        const descriptors = [{ ...descriptor('user=ann'), hitsAddend: 0, isNegativeHits: true }];
        assert.equal((await opened.limiter.shouldRateLimit({ domain: 'shop', descriptors })).overallCode, 'OK');
        assert.equal((await codes('user=ann'))[0], 'OVER_LIMIT');
      });

      it('rejects a limit without a unit', async () => {
        const descriptors = [{ ...descriptor('tier=gold'), limit: { requestsPerUnit: 5, unit: undefined } }];
        await assert.rejects(
          async () => opened.limiter.shouldRateLimit({ domain: 'shop', descriptors }),
          new InvalidRequest('descriptors[0].limit has no unit'),
        );
      });
    }

    it('reports no limit when none applies', async () => {
      const free = { code: 'OK', currentLimit: undefined, limitRemaining: 0, resetSeconds: undefined };
      assert.deepEqual(await ask('listed=x', 'unheard=of'), { overallCode: 'OK', statuses: [free, free] });
      const elsewhere = await opened.limiter.shouldRateLimit({
        domain: 'elsewhere',
        descriptors: [descriptor('user=ann')],
      });
      assert.deepEqual(elsewhere, { overallCode: 'OK', statuses: [free] });
    });

    it('always admits an unlimited descriptor', async () => {
      const { overallCode, statuses } = await ask('user=vip');
      assert.equal(overallCode, 'OK');
      assert.equal(statuses[0]?.limitRemaining, 4_294_967_295);
    });

    it('counts the hits of the request', async () => {
      const hits = (hitsAddend: number) => ({ domain: 'shop', descriptors: [descriptor('tier=gold')], hitsAddend });
      assert.equal((await opened.limiter.shouldRateLimit(hits(2))).overallCode, 'OK');
      assert.equal((await opened.limiter.shouldRateLimit(hits(2))).overallCode, 'OVER_LIMIT');
      assert.equal((await opened.limiter.shouldRateLimit(hits(0))).statuses[0]?.limitRemaining, 0);
    });

    /** Limits of two, one for each algorithm. */
    const twoOf = ['user=ann', 'steady=ann', 'smooth=ann'];

    const giveBack = (at: string, hitsAddend?: number) =>
      opened.limiter.shouldRateLimit({
        domain: 'shop',
        descriptors: [{ ...descriptor(at), isNegativeHits: true }],
        ...(hitsAddend !== undefined && { hitsAddend }),
      });

    it('gives hits back, so that a limit of concurrent requests admits one after another', async () => {
      for (const at of twoOf)
        for (let count = 0; count < 5; count += 1) {
          assert.deepEqual(await codes(at), ['OK', 'OK'], at);
          const { overallCode, statuses } = await giveBack(at);
          assert.deepEqual([overallCode, statuses[0]?.code, statuses[0]?.limitRemaining], ['OK', 'OK', 2], at);
        }
    });

    it('gives back at most the hits that were counted', async () => {
      for (const at of twoOf) {
        await ask(at);
        const left = async (hits: number) => (await giveBack(at, hits)).statuses[0]?.limitRemaining;
        assert.deepEqual([await left(5), await left(4_294_967_295), await left(1)], [2, 2, 2], at);
        assert.equal((await codes(at, at, at))[0], 'OVER_LIMIT', at);
      }
    });

    it('never denies hits that are given back', async () => {
      for (const at of twoOf) {
        const code = async () => (await ask(at)).overallCode;
        assert.deepEqual([await code(), await code(), await code()], ['OK', 'OK', 'OVER_LIMIT'], at);
        assert.equal((await giveBack(at)).overallCode, 'OK', at);
        assert.deepEqual([await code(), await code()], ['OK', 'OVER_LIMIT'], at);
      }
      assert.equal((await giveBack('closed=x')).overallCode, 'OK');
    });

    it('gives hits back even if another descriptor denies the request', async () => {
      for (const at of twoOf) {
        await ask(at);
        const descriptors = [{ ...descriptor(at), isNegativeHits: true }, descriptor('closed=x')];
        const { overallCode } = await opened.limiter.shouldRateLimit({ domain: 'shop', descriptors });
        assert.equal(overallCode, 'OVER_LIMIT');
        assert.equal((await ask(at)).statuses[0]?.limitRemaining, 1, at);
      }
    });

    it('distinguishes values beyond ASCII and accepts long ones', async () => {
      for (const user of ['ä', 'a', '名', '', 'x'.repeat(16_000)])
        assert.deepEqual(await codes(`user=${user}`), ['OK', 'OK']);
      for (const user of ['ä', '名', '']) assert.equal((await ask(`user=${user}`)).statuses[0]?.limitRemaining, 0);
    });

    it('returns OK for a request with only a domain', async () => {
      assert.deepEqual(await ask(), { overallCode: 'OK', statuses: [] });
    });

    it('rejects a request without a domain', async () => {
      const request: RateLimitRequest = { domain: '', descriptors: [] };
      await assert.rejects(
        async () => opened.limiter.shouldRateLimit(request),
        new InvalidRequest('domain must not be empty'),
      );
    });
  });
}
