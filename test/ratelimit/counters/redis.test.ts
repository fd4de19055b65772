/** Counters in Redis: sharing, batching, and behavior while Redis is down. */
import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { Counters, Hit, HitResult } from '../../../src/ratelimit/counters/counters.ts';
import {
  openRedisCounters,
  type RedisCounters,
  type RedisCountersOptions,
} from '../../../src/ratelimit/counters/redis.ts';
import { readRecipe } from '../../recipes/page.ts';
import { hitOfThree } from '../../support/limits.ts';
import { isInstalled } from '../../support/programs/installed.ts';
import { askRedis, createRedisServer, keysOfRedis, type RedisServer } from '../../support/programs/redis-server.ts';
import { describeWithRedis, unwatched } from '../../support/redis-counters.ts';
import { testServers } from '../../support/serve.ts';
import { eventually } from '../../support/waiting.ts';

const year = 365 * 86_400;
const algorithms = ['fixed_window', 'sliding_window', 'token_bucket'] as const;

const hit = (changes: Partial<Hit> = {}) => hitOfThree({ windowSeconds: year, ...changes });

/** Turns exceptions into rejections. */
async function take(counters: Counters, ...hits: readonly Hit[]): Promise<readonly HitResult[]> {
  return await counters.take(hits);
}

async function checkRemaining(counters: Counters, remaining: number, changes: Partial<Hit> = {}): Promise<void> {
  const [result] = await take(counters, hit(changes));
  assert.equal(result?.remaining, remaining, changes.algorithm);
}

describe('Redis counters without Redis', () => {
  it('show the required form when the URL is invalid', async () => {
    for (const url of ['', 'localhost:6379', 'http://localhost'])
      await assert.rejects(openRedisCounters({ url, outage: unwatched }), /redis:\/\/host:6379/);
  });
});

describeWithRedis('Redis counters', ({ url, open }) => {
  it('admit exactly the limit to two concurrent processes with every algorithm', async () => {
    const script = fileURLToPath(new URL('./redis-taker.ts', import.meta.url));
    const takers = [1, 2].map(() => fork(script, [url()], { execArgv: ['--conditions=frontdesk-source'] }));
    await Promise.all(takers.map((taker) => once(taker, 'message')));
    const totals = takers.map(async (taker): Promise<Record<string, number>> => {
      taker.send('go');
      const [admitted] = await once(taker, 'message');
      return admitted;
    });
    const [one = {}, other = {}] = await Promise.all(totals);
    for (const algorithm of algorithms) assert.equal((one[algorithm] ?? 0) + (other[algorithm] ?? 0), 100, algorithm);
  });

  it('need only the Redis permissions that the recipe lists', async () => {
    const text = readRecipe('Two replicas on PostgreSQL and Redis').text;
    const [, rules = ''] = /A user of Redis needs `([^`]+)`/.exec(text) ?? [];
    await askRedis(url(), ['ACL', 'SETUSER', 'counting', 'on', '>secret', ...rules.split(' ')]);
    await askRedis(url(), ['ACL', 'LOG', 'RESET']);
    await askRedis(url(), ['SCRIPT', 'FLUSH']);
    const counters = await open({
      url: url().replace('//', '//counting:secret@'),
      keyPrefix: `frontdesk:${randomUUID()}:`,
    });
    for (const algorithm of algorithms)
      for (const remaining of [2, 1, 0]) await checkRemaining(counters, remaining, { algorithm });
    assert.deepEqual(await askRedis(url(), ['ACL', 'LOG']), []);
  });

  it('send all decisions of a turn in one call, which makes them in order', async () => {
    const counters = await open();
    await take(counters, hit({ key: 'other' }));
    const before = await scriptCalls(url());
    const decisions = await Promise.all(Array.from({ length: 5 }, () => take(counters, hit(), hit({ key: 'b' }))));
    assert.deepEqual(
      decisions.map((results) => results.map(({ over, remaining }) => (over ? 'over' : remaining)).join()),
      ['2,2', '1,1', '0,0', 'over,over', 'over,over'],
    );
    assert.equal((await scriptCalls(url())) - before, 1);
  });

  it('split many decisions of a turn into several calls, so that Redis is not blocked for long', async () => {
    const counters = await open();
    await take(counters, hit({ key: 'other' }));
    const before = await scriptCalls(url());
    const takes = Array.from({ length: 300 }, () => take(counters, hit({ limit: 250 })));
    const over = (await Promise.all(takes)).filter(([result]) => result?.over);
    assert.equal(over.length, 50);
    assert.equal((await scriptCalls(url())) - before, 12);
  });

  it('fail only the decision whose key holds something other than a counter', async () => {
    const keyPrefix = `${randomUUID()}:`;
    const counters = await open({ keyPrefix });
    await askRedis(url(), ['RPUSH', `${keyPrefix}fixed_window:${year}:taken`, 'a list']);
    const [before, none, refused, after] = await Promise.allSettled([
      take(counters, hit()),
      take(counters),
      take(counters, hit({ key: 'b' }), hit({ key: 'taken' })),
      take(counters, hit(), hit({ key: 'b' })),
    ]);
    assert.match(String(refused.status === 'rejected' && refused.reason), /something other than a counter/);
    assert.deepEqual(
      [before, none, after].map((one) => one.status === 'fulfilled' && one.value.map(({ remaining }) => remaining)),
      [[2], [], [1, 2]],
    );
  });

  it('fail with the message of Redis when they lack read permission', async () => {
    const rights = ['~*', '-@all', '+evalsha', '+eval', '+ping', '+client', '+hello', '+time', '+set'];
    await askRedis(url(), ['ACL', 'SETUSER', 'blind', 'on', '>hush', ...rights]);
    const counters = await open({ url: url().replace('//', '//blind:hush@') });
    await assert.rejects(take(counters, hit()), /ACL|permission|can't run/i);
  });

  it('reload their script after Redis has dropped it', async () => {
    const counters = await open();
    await checkRemaining(counters, 2);
    await askRedis(url(), ['SCRIPT', 'FLUSH']);
    await checkRemaining(counters, 1);
  });

  it('let keys expire within a second after they become irrelevant', async () => {
    const keyPrefix = `${randomUUID()}:`;
    const counters = await open({ keyPrefix });
    const changes = [{ key: 'once' }, { key: 'again' }, { key: 'again' }, { key: 'shadow', shadow: true }];
    for (const algorithm of algorithms)
      for (const change of changes) await take(counters, hit({ algorithm, windowSeconds: 60, ...change }));
    const keys = await keysOfRedis(url(), keyPrefix);
    assert.equal(keys.length, 9);
    for (const key of keys) {
      const ttlMs = Number(await askRedis(url(), ['PTTL', key]));
      const longestMs = key.includes('sliding') ? 121_000 : 61_000;
      assert.ok(ttlMs > 0 && ttlMs <= longestMs, `${key}: ${ttlMs}`);
    }
  });

  it('write nothing for a request that is denied or has 0 hits', async () => {
    const keyPrefix = `${randomUUID()}:`;
    const counters = await open({ keyPrefix });
    await take(counters, hit({ hits: 4 }), hit({ key: 'b' }));
    await take(counters, hit({ key: 'c', hits: 0 }));
    assert.deepEqual(await keysOfRedis(url(), keyPrefix), []);
  });

  it('separate windows and algorithms of a key, and keys that look alike in UTF-8', async () => {
    const counters = await open();
    for (const change of [{}, { windowSeconds: 86_400 * 30 }, { algorithm: 'token_bucket' }] as const)
      await checkRemaining(counters, 2, change);
    for (const key of ['\ud800', '\ud801', '\ufffd']) await checkRemaining(counters, 2, { key });
  });

  it('start a window at its border, and stay in it when the clock steps back across the border', async () => {
    const borderMs = Date.UTC(2026, 6, 1);
    let nowMs = borderMs - 1;
    const counters = await open({ clock: () => nowMs });
    for (const [afterMs, fixed, sliding] of [
      [-1, 3, 3],
      [0, 3, 2],
      [-1, 2, 1],
      [59_999, 1, 0],
      [60_000, 3, 0],
    ] as const) {
      nowMs = borderMs + afterMs;
      const kind = { windowSeconds: 60, limit: 4, burst: 4 };
      await checkRemaining(counters, fixed, kind);
      await checkRemaining(counters, sliding, { ...kind, algorithm: 'sliding_window' });
    }
  });

  it('follow a clock that was set back by more than a window', async () => {
    let nowMs = Date.UTC(2026, 6, 1);
    const counters = await open({ clock: () => nowMs });
    for (const algorithm of algorithms) {
      const spent = hit({ algorithm, windowSeconds: 60, hits: 3 });
      await take(counters, spent);
      nowMs -= 86_400_000;
      await take(counters, { ...spent, hits: 1 });
      nowMs += 180_000;
      const [result] = await take(counters, spent);
      assert.equal(result?.over, false, algorithm);
    }
  });

  it('reject everything once closed, and may be closed twice', async () => {
    const counters = await open();
    await counters.close();
    await counters.close();
    assert.equal(counters.isReady(), false);
    await assert.rejects(take(counters, hit()), /no connection/);
  });
});

if (isInstalled('redis-server')) {
  describe('Redis counters while Redis is down', () => {
    const servers = testServers();
    let server: RedisServer;
    let nowMs: number;

    beforeEach(async () => {
      server = await createRedisServer();
      servers.later(server.remove);
      nowMs = Date.UTC(2026, 6, 1);
    });

    async function open(options: Partial<RedisCountersOptions> = {}): Promise<RedisCounters> {
      const common = { url: server.url, outage: unwatched, clock: () => nowMs, random: () => 0.5, timeoutMs: 5_000 };
      const counters = await openRedisCounters({ ...common, ...options });
      servers.later(counters.close);
      return counters;
    }

    const ready = (counters: RedisCounters, expected = true) =>
      eventually(() => assert.equal(counters.isReady(), expected));

    /** Resolves when a command issued now has been sent. */
    const sent = () => new Promise((resolve) => setImmediate(() => setImmediate(resolve)));

    it('start without it, reject immediately, and count as soon as it is up', async () => {
      const counters = await open();
      assert.equal(counters.isReady(), false);
      await assert.rejects(take(counters, hit()), /no connection/);
      await server.start();
      await ready(counters);
      await checkRemaining(counters, 2);
    });

    it('reject pending decisions when it is killed, report the outage, and count again after a restart', async () => {
      await server.start();
      const reported: unknown[] = [];
      const outage = { ...unwatched, failed: (error: unknown) => void reported.push(error) };
      const counters = await open({ outage, timeoutMs: 60_000 });
      await take(counters, hit());
      server.freeze();
      const pending = assert.rejects(take(counters, hit()), /closed|ECONNRESET/i);
      await sent();
      await server.kill();
      await pending;
      await ready(counters, false);
      await assert.rejects(take(counters, hit()), /no connection/);
      await server.start();
      await ready(counters);
      await checkRemaining(counters, 2);
      assert.ok(reported.length > 0);
    });

    it('deny exhausted limits from the cache, unless its size is 0', async () => {
      await server.start();
      const [counters, uncached] = [await open(), await open({ overLimitCacheMax: 0 })];
      const check = async (one: RedisCounters, isCached: boolean) => {
        const [result] = await take(one, hit());
        assert.deepEqual([result?.over, result?.fromCache ?? false], [true, isCached]);
      };
      await take(counters, hit({ hits: 3 }));
      await check(counters, false);
      for (const _ of [1, 2]) await check(uncached, false);
      await server.kill();
      await check(counters, true);
      await assert.rejects(take(counters, hit({ key: 'another' })));
    });

    it('wait for a frozen server only until the deadline, then reject immediately, and reconnect', async () => {
      await server.start();
      const counters = await open({ timeoutMs: 200 });
      await take(counters, hit());
      server.freeze();
      await assert.rejects(take(counters, hit()), /did not respond within 200 ms/);
      nowMs += 2_000;
      await assert.rejects(take(counters, hit()), /did not respond within 200 ms/);
      await assert.rejects(take(counters, hit()), /no connection/);
      server.thaw();
      await ready(counters);
      await assert.rejects(take(counters, hit()), /will be retried shortly/);
      nowMs += 10_000;
      await checkRemaining(counters, 2, { key: 'b' });
    });

    it('do not time out because this process was busy', async () => {
      await server.start();
      const counters = await open({ timeoutMs: 200 });
      await take(counters, hit());
      const pending = checkRemaining(counters, 1);
      await sent();
      const untilMs = performance.now() + 300;
      while (performance.now() < untilMs);
      await pending;
    });

    it('fail with the message of Redis when its memory is full, unless it may evict other keys', async () => {
      await server.start();
      const counters = await open();
      // About 400 KB, half of which must be evicted. Connections that come or go use only 20 KB each.
      const others = Array.from({ length: 2_000 }, (_, index) => hit({ key: `other ${index}` }));
      await take(counters, ...others);
      const used = /used_memory:(\d+)/.exec(String(await askRedis(server.url, ['INFO', 'memory'])))?.[1];
      await askRedis(server.url, ['CONFIG', 'SET', 'maxmemory', String(Number(used) - 200_000)]);
      await assert.rejects(take(counters, hit()), /OOM.*'maxmemory'/);
      await askRedis(server.url, ['CONFIG', 'SET', 'maxmemory-policy', 'volatile-lru']);
      // All keys are equally recent, so any may be evicted. Only the first hit on a new counter is certain.
      await checkRemaining(counters, 2);
      assert.ok((await keysOfRedis(server.url, '')).length < others.length);
    });

    it('reconnect when the server has become a replica, and count as soon as it is writable', async () => {
      await server.start();
      const counters = await open();
      await take(counters, hit());
      const before = await connectionsTo(server.url);
      await askRedis(server.url, ['REPLICAOF', '127.0.0.1', '1']);
      await assert.rejects(take(counters, hit()), /READONLY/);
      await ready(counters);
      await assert.rejects(take(counters, hit()), /will be retried shortly/);
      await askRedis(server.url, ['REPLICAOF', 'NO', 'ONE']);
      nowMs += 10_000;
      await checkRemaining(counters, 2, { key: 'b' });
      // One for the reconnect, and one for each of this test's three commands.
      assert.equal((await connectionsTo(server.url)) - before, 1 + 3);
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
