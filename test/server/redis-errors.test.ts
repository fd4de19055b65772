/** A Redis that responds but cannot count is logged at the start, with what to do, and reported by check_ready. */
import assert from 'node:assert/strict';
import request from 'supertest';
import { call, desksOf } from '../support/desks.ts';
import { freePort } from '../support/programs/free-port.ts';
import { isInstalled } from '../support/programs/installed.ts';
import { askRedis, createRedisServer, createSentinel } from '../support/programs/redis-server.ts';
import { testServers } from '../support/serve.ts';
import { eventually } from '../support/waiting.ts';

// By default a node of a cluster also listens on its port plus 10,000, which another process may have.
const clusterOptions = `--cluster-enabled yes --cluster-port ${await freePort()}`;

const cases: readonly (readonly [name: string, credentials: string, options: string, expected: RegExp])[] = [
  ['a node of a cluster', '', clusterOptions, /Redis Cluster is not supported/],
  ['a read-only replica', '', '--replicaof 127.0.0.1 1', /name the primary/],
  ['a server that requires a password', '', '--requirepass secret', /check the user and the password/],
  ['a wrong password', ':wrong@', '--requirepass secret', /check the user and the password/],
  ['a user without EVAL', 'poor:x@', '--user poor on >x ~* +get +set +ping +time', /\+eval \+evalsha/],
  ['a server whose memory is full', '', '--maxmemory 1', /volatile-lru/],
  ['a working server', '', '', /^$/],
];

describe('at the start, REDIS_URL', () => {
  const openDesk = desksOf(testServers());

  async function startLines(redisUrl: string): Promise<string> {
    const lines: string[] = [];
    const write = (_fields: object, message = '') => void lines.push(message);
    const logger = { info() {}, warn: write, error: write };
    const config = { records: [], limits: [] };
    await openDesk({ config, only: ['ratelimit'], redisUrl, redisTimeoutMs: 5_000, logger });
    return lines.join('\n');
  }

  for (const [name, credentials, options, expected] of cases)
    it(`with ${name} is logged in at most one line`, async function () {
      if (!isInstalled('redis-server')) return this.skip();
      const server = await createRedisServer(options.split(' ').filter(Boolean));
      try {
        await server.start();
        const lines = await startLines(server.url.replace('//', `//${credentials}`));
        assert.match(lines, expected);
        assert.match(lines, /^(hits cannot be counted in Redis: requests pass uncounted; .*)?$/);
      } finally {
        await server.remove();
      }
    });
});

describe('with RATELIMIT_FAIL_OPEN=false, check_ready', () => {
  const openDesk = desksOf(testServers());

  it('returns 503 while no Sentinel names a primary, and the log names the Sentinels without the password', async function () {
    if (!isInstalled('redis-server')) return this.skip();
    const [primary, sentinel] = [await createRedisServer(), await createSentinel(1)];
    try {
      const fields: string[] = [];
      const write = (given: object) => void fields.push(JSON.stringify(given));
      const desk = await openDesk({
        config: { records: [], limits: [] },
        only: ['ratelimit'],
        redisUrl: `redis+sentinel://:hush@127.0.0.1:${sentinel.port},[::1]:${sentinel.port}/main`,
        redisTimeoutMs: 5_000,
        ratelimitFailOpen: false,
        logger: { info() {}, warn: write, error: write },
      });
      assert.match(fields.join(), new RegExp(`"redis":"127.0.0.1:${sentinel.port}, \\[::1\\]:${sentinel.port}"`));
      assert.doesNotMatch(fields.join(), /hush/);
      await call(desk, '/gateway/v0/check_ready').expect(503);
      await primary.start();
      await askRedis(primary.url, ['CONFIG', 'SET', 'requirepass', 'hush']);
      await sentinel.start();
      await askRedis(sentinel.url, ['SENTINEL', 'remove', 'main']);
      await askRedis(sentinel.url, ['SENTINEL', 'monitor', 'main', '127.0.0.1', String(primary.port), '1']);
      await eventually(() => call(desk, '/gateway/v0/check_ready').expect(200));
    } finally {
      await primary.remove();
      await sentinel.remove();
    }
  });

  it('returns 503 at the start and later, for as long as Redis is a read-only replica', async function () {
    if (!isInstalled('redis-server')) return this.skip();
    const server = await createRedisServer(['--replicaof', '127.0.0.1', '1']);
    try {
      await server.start();
      const limits = [
        { domain: 'd', descriptors: [{ key: 'k', rate_limit: { unit: 'day', requests_per_unit: 9 } }] },
      ] as const;
      const desk = await openDesk({
        config: { records: [], limits },
        only: ['ratelimit'],
        ratelimitHttpPort: 0,
        redisUrl: server.url,
        redisTimeoutMs: 5_000,
        ratelimitFailOpen: false,
      });
      const { ratelimitHttp } = await desk.listen();
      const descriptors = [{ entries: [{ key: 'k', value: 'v' }] }];
      const count = () => request(ratelimitHttp.url).post('/json').send({ domain: 'd', descriptors });
      const ready = (status: number) => call(desk, '/gateway/v0/check_ready').expect(status);
      await ready(503);
      await askRedis(server.url, ['REPLICAOF', 'NO', 'ONE']);
      await eventually(() => ready(200));
      await count().expect(200);
      await askRedis(server.url, ['REPLICAOF', '127.0.0.1', '1']);
      await count().expect(500);
      await ready(503);
      await askRedis(server.url, ['REPLICAOF', 'NO', 'ONE']);
      await eventually(() => ready(200));
      await count().expect(200);
    } finally {
      await server.remove();
    }
  });
});
