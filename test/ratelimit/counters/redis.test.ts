/** Counters in Redis beyond the contract: shared, batched, and what they do while Redis is away. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';
import type { Counters, Hit, HitResult } from '../../../src/ratelimit/counters/counters.ts';
import { createMemoryCounters } from '../../../src/ratelimit/counters/memory.ts';
import {
  openRedisCounters,
  type RedisCounters,
  type RedisCountersOptions,
} from '../../../src/ratelimit/counters/redis.ts';
import {
  askRedis,
  createRedisServer,
  hasRedisServer,
  keysOfRedis,
  type RedisServer,
} from '../../support/programs/redis-server.ts';
import { describeWithRedis, silent } from '../../support/redis-counters.ts';

const year = 365 * 86_400;

function hit(changes: Partial<Hit> = {}): Hit {
  const one: Hit = {
    key: 'a',
    algorithm: 'fixed_window',
    windowSeconds: year,
    limit: 3,
    burst: 3,
    hits: 1,
    shadow: false,
  };
  return { ...one, ...changes };
}

describe('Redis counters without Redis', () => {
  it('say what a URL looks like when theirs is invalid', async () => {
    for (const url of ['', 'localhost:6379', 'http://localhost'])
      await assert.rejects(openRedisCounters({ url, logger: silent }), /redis:\/\/host:6379/);
  });
});

describeWithRedis('Redis counters', ({ url, open }) => {
  it('admit exactly N of a limit of N in two processes at once, by every algorithm', async () => {
    const takers = await Promise.all([1, 2].map(() => startTaker(url(), 'two:', 100, 150)));
    const totals = await Promise.all(takers.map((go) => go()));
    for (const algorithm of ['fixed_window', 'sliding_window', 'token_bucket'])
      assert.equal(
        totals.reduce((sum, total) => sum + (total[algorithm] ?? 0), 0),
        100,
        algorithm,
      );
  }).timeout(30_000);

  it('ask once for all decisions of a turn, and make them in their order', async () => {
    const counters = await open();
    await counters.take([hit({ key: 'other' })]);
    const before = await scriptCalls(url());
    const decisions = await Promise.all(Array.from({ length: 5 }, () => counters.take([hit(), hit({ key: 'b' })])));
    assert.deepEqual(
      decisions.map((counts) => counts.map(({ over, remaining }) => (over ? 'over' : remaining))),
      [
        [2, 2],
        [1, 1],
        [0, 0],
        ['over', 'over'],
        ['over', 'over'],
      ],
    );
    assert.equal((await scriptCalls(url())) - before, 1);
  });

  it('split very many decisions of a turn into several calls, so that no other client waits long for Redis', async () => {
    const counters = await open();
    await counters.take([hit({ key: 'other' })]);
    const before = await scriptCalls(url());
    const takes = Array.from({ length: 300 }, () => counters.take([hit({ limit: 250 })]));
    const over = (await Promise.all(takes)).filter(([count]) => count?.over);
    assert.equal(over.length, 50);
    assert.equal((await scriptCalls(url())) - before, 12);
  });

  it('fail a decision whose key holds something else, and no other of the turn', async () => {
    const keyPrefix = `${randomUUID()}:`;
    const counters = await open({ keyPrefix });
    await askRedis(url(), ['RPUSH', `${keyPrefix}fixed_window:${year}:taken`, 'a list']);
    const [before, empty, refused, after] = await Promise.allSettled([
      take(counters, [hit()]),
      take(counters, []),
      take(counters, [hit({ key: 'b' }), hit({ key: 'taken' })]),
      take(counters, [hit(), hit({ key: 'b' })]),
    ]);
    assert.match(String(refused.status === 'rejected' && refused.reason), /something else than a counter/);
    assert.deepEqual(empty, { status: 'fulfilled', value: [] });
    assert.ok(before.status === 'fulfilled' && after.status === 'fulfilled');
    assert.deepEqual(
      [before, after].map(({ value }) => value.map(({ remaining }) => remaining)),
      [[2], [1, 2]],
    );
  });

  it('fail with the message of Redis when they may not read', async () => {
    const rights = ['~*', '-@all', '+evalsha', '+eval', '+ping', '+client', '+hello', '+time', '+set'];
    await askRedis(url(), ['ACL', 'SETUSER', 'blind', 'on', '>hush', ...rights]);
    const counters = await open({ url: url().replace('//', '//blind:hush@') });
    await assert.rejects(take(counters, [hit()]), /ACL|permission|can't run/i);
  });

  it('deny from the cache what is over, also when Redis is gone', async () => {
    const own = await createRedisServer();
    try {
      await own.start();
      const counters = await open({ url: own.url });
      await counters.take([hit({ hits: 3 })]);
      assert.deepEqual(fates(await counters.take([hit()])), [{ over: true, fromCache: false }]);
      await own.kill();
      assert.deepEqual(fates(await counters.take([hit()])), [{ over: true, fromCache: true }]);
      await assert.rejects(take(counters, [hit({ key: 'another' })]));
    } finally {
      await own.remove();
    }
  });

  it('ask Redis every time with a cache of 0', async () => {
    const counters = await open({ overLimitCacheMax: 0 });
    for (const _ of [1, 2, 3]) await counters.take([hit({ limit: 0, burst: 0 })]);
    assert.deepEqual(fates(await counters.take([hit({ limit: 0, burst: 0 })])), [{ over: true, fromCache: false }]);
  });

  it('load their script again after Redis has dropped it', async () => {
    const counters = await open();
    await counters.take([hit()]);
    await askRedis(url(), ['SCRIPT', 'FLUSH']);
    const [count] = await counters.take([hit()]);
    assert.equal(count?.remaining, 1);
  });

  it('keep no key longer than a second after it matters', async () => {
    const keyPrefix = `${randomUUID()}:`;
    const counters = await open({ keyPrefix });
    const changes = [{ key: 'once' }, { key: 'again' }, { key: 'again' }, { key: 'shadow', shadow: true }];
    for (const algorithm of ['fixed_window', 'sliding_window', 'token_bucket'] as const)
      for (const change of changes) await counters.take([hit({ algorithm, windowSeconds: 60, ...change })]);
    const keys = await keysOfRedis(url(), keyPrefix);
    assert.equal(keys.length, 9);
    for (const key of keys) {
      const ttlMs = Number(await askRedis(url(), ['PTTL', key]));
      const longestMs = key.includes('sliding') ? 121_000 : 61_000;
      assert.ok(ttlMs > 0 && ttlMs <= longestMs, `${key}: ${ttlMs}`);
    }
  });

  it('write nothing for a request that is denied or only looks', async () => {
    const keyPrefix = `${randomUUID()}:`;
    const counters = await open({ keyPrefix });
    await counters.take([hit({ hits: 4 }), hit({ key: 'b' })]);
    await counters.take([hit({ key: 'c', hits: 0 })]);
    assert.deepEqual(await keysOfRedis(url(), keyPrefix), []);
  });

  it('start with a new counter when the window or the algorithm of a key changes', async () => {
    const counters = await open();
    for (const change of [{}, { windowSeconds: 86_400 * 30 }, { algorithm: 'token_bucket' }] as const) {
      const [count] = await counters.take([hit(change)]);
      assert.equal(count?.remaining, 2);
    }
  });

  it('begin a window at its border, and stay in it when the clock steps back over the border', async () => {
    const borderMs = Date.UTC(2026, 6, 1);
    let nowMs = borderMs - 1;
    const counters = await open({ clock: () => nowMs });
    const check = async (atMs: number, remaining: number) => {
      nowMs = atMs;
      const [count] = await counters.take([hit({ windowSeconds: 60 })]);
      assert.equal(count?.remaining, remaining);
    };
    await check(borderMs - 1, 2);
    await check(borderMs, 2);
    await check(borderMs - 1, 1);
    await check(borderMs + 59_999, 0);
    await check(borderMs + 60_000, 2);
  });

  it('follow a clock that was set back further', async () => {
    let nowMs = Date.UTC(2026, 6, 1);
    const counters = await open({ clock: () => nowMs });
    for (const algorithm of ['fixed_window', 'sliding_window', 'token_bucket'] as const) {
      const spent = hit({ algorithm, windowSeconds: 60, hits: 3 });
      await counters.take([spent]);
      nowMs -= 86_400_000;
      await counters.take([hit({ ...spent, hits: 1 })]);
      nowMs += 180_000;
      const [count] = await counters.take([spent]);
      assert.equal(count?.over, false, algorithm);
    }
  });

  it('keep keys apart that UTF-8 cannot tell apart', async () => {
    const counters = await open();
    for (const key of ['\ud800', '\ud801', '\ufffd']) {
      const [count] = await counters.take([hit({ key })]);
      assert.equal(count?.remaining, 2);
    }
  });

  it('count as counters in memory do while time stands still, with the cache', async () => {
    await assertSameAsMemory(open, fc.constant(0), {});
  }).timeout(60_000);

  it('count as counters in memory do while time goes on', async () => {
    // Without the cache, whose numbers may be older.
    await assertSameAsMemory(open, fc.nat(4_000), { overLimitCacheMax: 0 });
  }).timeout(60_000);
});

if (hasRedisServer()) {
  describe('Redis counters when Redis is away', () => {
    let server: RedisServer;
    let counters: RedisCounters | undefined;
    let nowMs: number;

    beforeEach(async () => {
      server = await createRedisServer();
      nowMs = Date.UTC(2026, 6, 1);
    });

    afterEach(async () => {
      await counters?.close();
      counters = undefined;
      await server.remove();
    });

    async function open(options: Partial<RedisCountersOptions> = {}): Promise<RedisCounters> {
      const common = { url: server.url, logger: silent, clock: () => nowMs, random: () => 0.5 };
      counters = await openRedisCounters({ ...common, timeoutMs: 5_000, ...options });
      return counters;
    }

    it('start without it, refuse at once, and count as soon as it is there', async () => {
      const started = await open();
      assert.equal(started.isReady(), false);
      await assert.rejects(take(started, [hit()]), /no connection/);
      await server.start();
      await until(() => started.isReady());
      assert.equal((await started.take([hit()]))[0]?.remaining, 2);
    });

    it('count again after it was killed and started, with two lines in the log', async () => {
      await server.start();
      const lines: string[] = [];
      const log = (_fields: object, message = '') => void lines.push(message);
      const running = await open({ logger: { info: log, warn: log } });
      await running.take([hit()]);
      await server.kill();
      await until(() => !running.isReady());
      await assert.rejects(take(running, [hit()]), /no connection/);
      await server.start();
      await until(() => running.isReady());
      assert.equal((await running.take([hit()]))[0]?.remaining, 2);
      assert.deepEqual(lines, ['there is no connection to Redis', 'the connection to Redis is back']);
    });

    it('fail the pending decisions when it is killed', async () => {
      await server.start();
      const running = await open({ timeoutMs: 60_000 });
      server.freeze();
      const pending = assert.rejects(take(running, [hit()]), /closed|ECONNRESET/i);
      // The command must have left before its reader dies.
      await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
      await server.kill();
      await pending;
    });

    it('wait for a frozen server no longer than the deadline, then not at all, and reconnect', async () => {
      await server.start();
      const running = await open({ timeoutMs: 200 });
      await running.take([hit()]);
      server.freeze();
      await assert.rejects(take(running, [hit()]), /did not answer within 200 ms/);
      nowMs += 2_000;
      await assert.rejects(take(running, [hit()]), /did not answer within 200 ms/);
      await assert.rejects(take(running, [hit()]), /no connection/);
      server.thaw();
      await until(() => running.isReady());
      await assert.rejects(take(running, [hit()]), /asked again in a while/);
      nowMs += 10_000;
      const [count] = await running.take([hit({ key: 'b' })]);
      assert.equal(count?.remaining, 2);
    });

    it('do not count time in which this process was busy', async () => {
      await server.start();
      const running = await open({ timeoutMs: 200 });
      await running.take([hit()]);
      const pending = take(running, [hit()]);
      // The command must have left before the event loop is blocked for longer than the deadline.
      await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
      block(600);
      assert.equal((await pending)[0]?.remaining, 1);
    });

    it('replace the connection to a server that has become a replica, and count as soon as it is writable', async () => {
      await server.start();
      const running = await open();
      await running.take([hit()]);
      const before = await connectionsTo(server.url);
      await askRedis(server.url, ['REPLICAOF', '127.0.0.1', '1']);
      await assert.rejects(take(running, [hit()]), /READONLY/);
      await until(() => running.isReady());
      await assert.rejects(take(running, [hit()]), /asked again in a while/);
      await askRedis(server.url, ['REPLICAOF', 'NO', 'ONE']);
      nowMs += 10_000;
      assert.equal((await running.take([hit({ key: 'b' })]))[0]?.remaining, 2);
      // The new connection, and one for each command of this test.
      assert.equal((await connectionsTo(server.url)) - before, 1 + 3);
    });

    it('keep the password of the URL out of the log', async () => {
      const logged: unknown[] = [];
      const log = (...all: unknown[]) => void logged.push(...all);
      await open({ url: server.url.replace('//', '//me:hush@'), logger: { info: log, warn: log } });
      assert.ok(logged.length > 0);
      assert.doesNotMatch(JSON.stringify(logged), /hush/);
    });

    it('refuse everything once they are closed, also when closed twice', async () => {
      await server.start();
      const running = await open();
      await running.close();
      await running.close();
      assert.equal(running.isReady(), false);
      await assert.rejects(take(running, [hit()]), /no connection/);
    });
  });
}

async function connectionsTo(url: string): Promise<number> {
  const statistics = String(await askRedis(url, ['INFO', 'stats']));
  return Number(/total_connections_received:(\d+)/.exec(statistics)?.[1]);
}

async function scriptCalls(url: string): Promise<number> {
  const statistics = String(await askRedis(url, ['INFO', 'commandstats']));
  return Number(/cmdstat_evalsha:calls=(\d+)/.exec(statistics)?.[1]);
}

async function take(counters: Counters, hits: readonly Hit[]): Promise<readonly HitResult[]> {
  return await counters.take(hits);
}

function fates(counts: readonly HitResult[]) {
  return counts.map(({ over, fromCache = false }) => ({ over, fromCache }));
}

function block(ms: number): void {
  const untilMs = performance.now() + ms;
  while (performance.now() < untilMs);
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 5));
}

/** Both see the same hits at the same time, and must give the same counts. */
async function assertSameAsMemory(
  open: (options: Partial<RedisCountersOptions>) => Promise<RedisCounters>,
  pause: fc.Arbitrary<number>,
  options: Partial<RedisCountersOptions>,
): Promise<void> {
  let nowMs = 0;
  const clock = () => nowMs;
  // All hits of a key have the same limit.
  const limits = fc.array(limitOfKey, { minLength: 3, maxLength: 3 });
  const hits = fc.array(fc.record({ index: fc.nat(2), hits: fc.integer({ min: 1, max: 4 }) }), {
    minLength: 1,
    maxLength: 4,
  });
  const steps = fc.array(fc.record({ pause, hits, countDenied: fc.boolean() }), { maxLength: 20 });
  await fc.assert(
    fc.asyncProperty(limits, steps, async (kinds, requests) => {
      nowMs = Date.UTC(2026, 0, 1);
      const memory = createMemoryCounters({ clock });
      const redis = await open({ ...options, clock });
      for (const { pause: pauseMs, hits: chosen, countDenied } of requests) {
        nowMs += pauseMs;
        const asked = chosen.map(({ index, ...rest }) => ({ ...kinds[index], key: String(index), ...rest }) as Hit);
        const expected = memory.take(asked, { countDenied });
        const counts = await redis.take(asked, { countDenied });
        assert.deepEqual(counts.map(withoutOrigin), expected.map(withoutOrigin));
      }
      await redis.close();
    }),
    { numRuns: 60 },
  );
}

const limitOfKey = fc
  .record({
    algorithm: fc.constantFrom('fixed_window' as const, 'sliding_window' as const, 'token_bucket' as const),
    windowSeconds: fc.constantFrom(1, 3, 60),
    limit: fc.nat(7),
    burst: fc.integer({ min: 1, max: 9 }),
    shadow: fc.boolean(),
  })
  .map((kind) => (kind.algorithm === 'token_bucket' ? kind : { ...kind, burst: kind.limit }));

function withoutOrigin({ over, remaining, resetSeconds }: HitResult): HitResult {
  return { over, remaining, resetSeconds };
}

/** A process that is ready to take hits; the function starts it, and returns how many each algorithm admitted. */
function startTaker(url: string, prefix: string, limit: number, attempts: number) {
  const script = fileURLToPath(new URL('./redis-taker.ts', import.meta.url));
  const node = ['--conditions=frontdesk-source', script];
  const child = spawn(process.execPath, [...node, url, prefix, String(limit), String(attempts)], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  let output = '';
  const ended = new Promise<Record<string, number>>((resolve, reject) => {
    child.once('close', (code) => {
      if (code === 0) resolve(JSON.parse(output.replace('ready\n', '')));
      else reject(new Error(`a taker ended with ${code}`));
    });
  });
  return new Promise<() => Promise<Record<string, number>>>((resolve, reject) => {
    ended.catch(reject);
    child.stdout.on('data', (chunk: Buffer) => {
      output += chunk;
      if (output === 'ready\n')
        resolve(() => {
          child.stdin.write('go\n');
          return ended;
        });
    });
  });
}
