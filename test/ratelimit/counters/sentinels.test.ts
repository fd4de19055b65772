/** Counters in the primary that Sentinels name, through failovers and while Sentinels are away. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { Hit } from '../../../src/ratelimit/counters/counters.ts';
import { openRedisCounters, type RedisCounters } from '../../../src/ratelimit/counters/redis.ts';
import { adviseOnRedis } from '../../../src/ratelimit/counters/redis-connection.ts';
import { hitOfThree } from '../../support/limits.ts';
import { describeWith } from '../../support/programs/installed.ts';
import { askRedis, createRedisServer, createSentinel, type RedisServer } from '../../support/programs/redis-server.ts';
import { unwatched } from '../../support/redis-counters.ts';
import { testServers } from '../../support/serve.ts';
import { eventually } from '../../support/waiting.ts';

const limit = 1_000_000;
const hit = (key: string): Hit => hitOfThree({ key, limit, burst: limit, windowSeconds: 365 * 86_400 });

/** What became of the calls that a client sends one after the other, until it is stopped. */
interface Load {
  readonly counted: number;
  readonly errors: readonly string[];
}

describeWith('redis-server', 'Redis counters with Sentinels', () => {
  const servers = testServers();
  let primary: RedisServer;
  let replica: RedisServer;
  let sentinels: readonly RedisServer[];

  async function start(server: RedisServer): Promise<RedisServer> {
    servers.later(server.remove);
    await server.start();
    return server;
  }

  async function startAll(sentinelOptions: readonly string[] = []): Promise<void> {
    primary = await start(await createRedisServer());
    const follows = ['--replicaof', '127.0.0.1', String(primary.port), '--repl-diskless-sync-delay', '0'];
    replica = await start(await createRedisServer(follows));
    const created = await Promise.all([1, 2, 3].map(() => createSentinel(primary.port, sentinelOptions)));
    sentinels = await Promise.all(created.map(start));
  }

  /** A failover needs Sentinels that know each other, and a replica that is complete. */
  async function haveMet(): Promise<void> {
    await eventually(async () => {
      assert.match(String(await askRedis(replica.url, ['INFO', 'replication'])), /master_link_status:up/);
      for (const { url } of sentinels)
        assert.match(String(await askRedis(url, ['INFO', 'sentinel'])), /status=ok,.*slaves=1,sentinels=3/);
    }, 100);
  }

  const sentinelUrl = (path = '/main', ports = sentinels.map(({ port }) => port)) =>
    `redis+sentinel://${ports.map((port) => `127.0.0.1:${port}`).join()}${path}`;

  async function open({ url = sentinelUrl(), failed = unwatched.failed as (error: unknown) => void } = {}) {
    const outage = { ...unwatched, failed };
    const counters = await openRedisCounters({ url, outage, timeoutMs: 500, keyPrefix: `${randomUUID()}:` });
    servers.later(counters.close);
    return counters;
  }

  const isReady = (counters: RedisCounters, expected = true) =>
    eventually(() => assert.equal(counters.isReady(), expected));

  const take = async (counters: RedisCounters, key: string) => await counters.take([hit(key)]);

  /** Asks without counting. */
  async function countOf(counters: RedisCounters, key: string): Promise<number> {
    const [result] = await eventually(async () => counters.take([{ ...hit(key), hits: 0 }]));
    return limit - (result?.remaining ?? Number.NaN);
  }

  /** Counts hits until `until` resolves, without a pause unless one was rejected. */
  async function load(counters: RedisCounters, key: string, until: Promise<unknown>): Promise<Load> {
    let isOver = false;
    void until.finally(() => {
      isOver = true;
    });
    let counted = 0;
    const errors: string[] = [];
    async function client(): Promise<void> {
      while (!isOver) {
        await take(counters, key).then(
          () => {
            counted += 1;
          },
          (error: Error) => {
            errors.push(error.message);
            return new Promise((resolve) => setTimeout(resolve, 5));
          },
        );
      }
    }
    await Promise.all(Array.from({ length: 20 }, client));
    return { counted, errors };
  }

  /** Resolves when a server that was a replica has run the script. */
  async function countsIn({ url }: RedisServer, counters: RedisCounters): Promise<void> {
    await eventually(async () => {
      await take(counters, 'probe');
      assert.match(String(await askRedis(url, ['INFO', 'commandstats'])), /cmdstat_eval:calls=/);
    }, 50);
  }

  it('find the primary although the Sentinels before the last one are away', async () => {
    await startAll();
    await Promise.all([sentinels[0]?.kill(), sentinels[1]?.kill()]);
    const counters = await open();
    await isReady(counters);
    await take(counters, 'a');
    assert.equal(await countOf(counters, 'a'), 1);
  });

  it('go on when the primary is killed under load, and the new one never has more hits than were sent', async () => {
    await startAll();
    await haveMet();
    const counters = await open();
    await take(counters, 'a');
    const killed = take(counters, 'a').then(primary.kill);
    const { counted, errors } = await load(counters, 'before', killed);
    const after = await load(counters, 'after', countsIn(replica, counters));
    assert.ok((await countOf(counters, 'before')) <= counted + errors.length);
    assert.ok(after.counted > 0);
    assert.equal(await countOf(counters, 'after'), after.counted);
    for (const message of after.errors) assert.match(message, /no connection|retried shortly/);
  });

  it('go on when the primary hangs, and count nothing of what was given up meanwhile', async () => {
    await startAll();
    await haveMet();
    const counters = await open();
    await take(counters, 'a');
    primary.freeze();
    const during = await load(counters, 'during', countsIn(replica, counters));
    assert.ok(during.errors.some((message) => /did not respond within 500 ms/.test(message)));
    primary.thaw();
    await eventually(async () =>
      assert.match(String(await askRedis(primary.url, ['INFO', 'replication'])), /master_link_status:up/),
    );
    assert.equal(await countOf(counters, 'during'), during.counted);
  });

  it('follow a failover that an operator starts, although the old primary goes on counting', async () => {
    await startAll();
    await haveMet();
    const counters = await open();
    await take(counters, 'a');
    const [sentinel] = sentinels;
    // The Sentinels cannot demote it.
    await askRedis(primary.url, ['ACL', 'SETUSER', 'default', '-replicaof', '-slaveof']);
    // It refuses until it has heard from the replica itself, whatever the primary says.
    await eventually(() => askRedis(sentinel?.url ?? '', ['SENTINEL', 'failover', 'main']), 100);
    await countsIn(replica, counters);
    await take(counters, 'later');
    assert.equal(await countOf(counters, 'later'), 1);
  });

  it('count as before while all Sentinels are away, and find the primary as soon as one is back', async () => {
    await startAll();
    await haveMet();
    const early = await open();
    await Promise.all(sentinels.map(({ kill }) => kill()));
    await take(early, 'a');
    assert.equal(await countOf(early, 'a'), 1);
    const errors: Error[] = [];
    const late = await open({ failed: (error) => void errors.push(error as Error) });
    assert.equal(late.isReady(), false);
    await assert.rejects(take(late, 'a'), /no connection/);
    assert.match(errors[0]?.message ?? '', /^the Sentinel at 127\.0\.0\.1:\d+ names no primary: .*ECONNREFUSED/);
    await sentinels[1]?.start();
    await isReady(late);
    await take(late, 'a');
  });

  for (const [what, path, options, pattern, remedy] of [
    ['the name', '/cache', [], /^the Sentinel at .* monitors no primary named cache$/, /sentinel monitor/],
    ['no password', '/main', ['--requirepass', 'secret'], /names no primary: NOAUTH/, /\?sentinel_password=/],
    ['the password', '/main?sentinel_password=x', ['--requirepass', 'secret'], /WRONGPASS/, /\?sentinel_password=/],
  ] as const)
    it(`say what to correct if ${what} is wrong`, async () => {
      await startAll(options);
      const errors: unknown[] = [];
      const counters = await open({ url: sentinelUrl(path), failed: (error) => void errors.push(error) });
      assert.equal(counters.isReady(), false);
      // A start waits for no longer than a second, which a busy machine may need for the first answer.
      await eventually(() => assert.match(String((errors[0] as Error | undefined)?.message), pattern));
      assert.match(adviseOnRedis(errors[0]) ?? '', remedy);
    });

  it('say that the URL names a Redis instead of Sentinels, and Sentinels instead of a Redis', async () => {
    await startAll();
    const errors: unknown[] = [];
    await open({ url: sentinelUrl('/main', [primary.port]), failed: (error) => void errors.push(error) });
    await eventually(() => assert.match(adviseOnRedis(errors[0]) ?? '', /write redis:\/\/ for a Redis/));
    const counters = await open({ url: sentinels[0]?.url ?? '' });
    const error = await take(counters, 'a').catch((reason: unknown) => reason);
    assert.match(adviseOnRedis(error) ?? '', /redis\+sentinel:\/\/host:26379\/NAME/);
  });

  it('use the password of the Sentinels, and that of Redis', async () => {
    await startAll(['--requirepass', 'secret']);
    await askRedis(primary.url, ['CONFIG', 'SET', 'requirepass', 'hush']);
    const url = sentinelUrl('/main/2?sentinel_password=secret').replace('//', '//:hush@');
    const counters = await open({ url });
    await isReady(counters);
    await take(counters, 'a');
  });
});
