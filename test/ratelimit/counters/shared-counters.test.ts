/** Counters in memory that threads share: no hit is lost or counted twice, and a thread that ends leaves no lock. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { setImmediate } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { createMemoryCounters, createSharedTable, type Hit, releaseLocksOf, type SharedTable } from '#ratelimit';
import { locksOf } from '../../../src/ratelimit/counters/counter-table.ts';
import { endThread } from '../../../src/server/threads/end-thread.ts';
import { hitOfThree } from '../../support/limits.ts';
import type { CountingOrder } from './counting-thread.ts';

const algorithms = ['fixed_window', 'sliding_window', 'token_bucket'] as const;
/** More keys than sets, so that requests wait for each other and some keys share a set. */
const keysMax = 100;
const kindCount = 24;

function setUp(limit: number) {
  const table = createSharedTable(keysMax);
  const kinds = Array.from({ length: kindCount }, (_, index) => {
    const algorithm = algorithms[index % 3] ?? 'fixed_window';
    return hitOfThree({ key: `key ${index}`, algorithm, windowSeconds: 365 * 86_400, limit, burst: limit });
  });
  const admitted = new Int32Array(new SharedArrayBuffer(kinds.length * 4));
  const workers = new Set<Worker>();

  function start(thread: number, requests: number): Worker {
    const workerData: CountingOrder = { table, thread, requests, kinds, admitted };
    const worker = new Worker(new URL('./counting-thread.ts', import.meta.url), { workerData });
    workers.add(worker);
    return worker;
  }

  return {
    table,
    kinds,
    admitted,
    start,
    counted: () => countedOf(table, kinds),
    total: () => admitted.reduce((sum, hits) => sum + hits, 0),
    endAll: () => Promise.all([...workers].map(endThread)),
  };
}

function countedOf(table: SharedTable, kinds: readonly Hit[]): readonly number[] {
  const counters = createMemoryCounters({ shared: { table, thread: 99 }, clock: () => 1_800_000_000_000 });
  return kinds.map((hit) => hit.limit - (counters.take([{ ...hit, hits: 0 }])[0]?.remaining ?? 0));
}

describe('counters that threads share', () => {
  let shared: ReturnType<typeof setUp>;
  afterEach(() => shared.endAll());

  async function run(limit: number, requestsOfEach: number): Promise<void> {
    shared = setUp(limit);
    await Promise.all([1, 2, 3].map((thread) => once(shared.start(thread, requestsOfEach), 'exit')));
  }

  it('lose no hit and count none twice, whatever the algorithm and the limits of a request', async () => {
    await run(1_000_000_000, 40_000);
    assert.ok(shared.total() > 100_000);
    assert.deepEqual(shared.counted(), [...shared.admitted]);
  });

  it('admit up to the limit and no more, and count a request on all of its limits or on none', async () => {
    await run(500, 40_000);
    assert.deepEqual(shared.counted(), [...shared.admitted]);
    assert.ok(
      shared.admitted.every((hits) => hits > 450 && hits <= 500),
      shared.admitted.join(),
    );
  });

  it('go on when a thread is terminated in the middle of requests, of which only the last may be unfinished', async () => {
    shared = setUp(1_000_000_000);
    const survivor = shared.start(1, Number.POSITIVE_INFINITY);
    const ends = 6;
    for (let end = 0; end < ends; end += 1) {
      const victim = shared.start(2, Number.POSITIVE_INFINITY);
      await once(victim, 'online');
      await untilCounted(2_000);
      await endThread(victim);
      releaseLocksOf(shared.table, 2);
      await untilCounted(2_000);
    }
    await endThread(survivor);
    releaseLocksOf(shared.table, 1);
    assert.deepEqual(new Set(locksOf(shared.table)), new Set([0]));
    const unfinished = shared.counted().reduce((sum, hits) => sum + hits, 0) - shared.total();
    const [requests, hitsMax] = [ends + 1, 3];
    assert.ok(Math.abs(unfinished) <= requests * hitsMax, `${unfinished}`);
  });

  async function untilCounted(more: number): Promise<void> {
    const before = shared.total();
    while (shared.total() < before + more) await setImmediate();
  }

  it('have the locks of all threads but the one that has ended', () => {
    shared = setUp(10);
    const locks = locksOf(shared.table);
    locks.set([9, 8, 9, 7]);
    releaseLocksOf(shared.table, 9);
    assert.deepEqual([...locks.subarray(0, 4)], [0, 8, 0, 7]);
  });

  it('take over a lock that nobody releases, so that no thread waits forever', () => {
    shared = setUp(10);
    locksOf(shared.table).fill(9);
    const counters = createMemoryCounters({ shared: { table: shared.table, thread: 1 } });
    assert.equal(counters.take([hitOfThree()])[0]?.remaining, 2);
    assert.equal(locksOf(shared.table).filter((holder) => holder === 9).length, locksOf(shared.table).length - 1);
  });
});
