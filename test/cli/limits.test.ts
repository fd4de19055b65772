/** `frontdesk limits`: shows and resets the limits of one client, in a running gateway or in Redis. */
import assert from 'node:assert/strict';
import { createMemoryCounters } from '#ratelimit';
import { createClientLimits } from '../../src/ratelimit/client-limits.ts';
import { annRecord, authRecord, demoRecord, limitRecord, mappingRecord } from '../support/desks.ts';
import { domain, limit, node, unlimited } from '../support/limits.ts';
import { runCommand, serveHere } from '../support/programs/command.ts';
import { askRedis, keysOfRedis } from '../support/programs/redis-server.ts';
import { describeWithRedis } from '../support/redis-counters.ts';
import { testServers } from '../support/serve.ts';
import { temporaryFiles } from '../support/temporary-files.ts';

const labels = { gateway: [{ by_key: [{ key: { header: 'X-Key', omit_if_not_present: true } }] }] };
const limits = `domain: gateway
descriptors:
  - key: key
    rate_limit: { unit: year, requests_per_unit: 2 }
`;
const files = {
  'config/services/records.yaml': [
    authRecord,
    limitRecord,
    mappingRecord('open', '/gateway/v0/check_alive/', 'http://127.0.0.1:9', { bypass_auth: true, labels }),
  ]
    .map((record) => `---\n${JSON.stringify(record)}\n`)
    .join(''),
  'config/users.yaml': JSON.stringify({ users: [annRecord, demoRecord] }),
  'config/ratelimit/limits.yaml': limits,
};

describe('frontdesk limits', () => {
  const servers = testServers();
  const writeFiles = temporaryFiles();

  async function setUp(env: Readonly<Record<string, string>> = {}) {
    const cwd = await writeFiles(files);
    const { gateway, ratelimitHttp } = await serveHere(servers, { cwd, env: { RATELIMIT_HTTP_PORT: '0', ...env } });
    const run = (args: string, input = 'demo\n', more: Readonly<Record<string, string>> = {}) =>
      runCommand(['limits', ...args.split(' ')], { cwd, input, env: { ...env, ...more } });
    const hit = async (value = 'a') => {
      const body = JSON.stringify({ domain: 'gateway', descriptors: [{ entries: [{ key: 'key', value }] }] });
      const headers = { 'Content-Type': 'application/json' };
      return (await fetch(`${ratelimitHttp.url}/json`, { method: 'POST', headers, body })).status;
    };
    return { run, hit, url: gateway.url, port: new URL(gateway.url).port };
  }

  it('shows and resets the limits of a client in the memory of a running gateway', async () => {
    const { run, hit, url, port } = await setUp();
    assert.deepEqual([await hit(), await hit(), await hit()], [200, 200, 429]);
    const shown = await run('show gateway key=a --user demo', 'demo\n', { PORT: port });
    assert.equal(shown.stderr, '');
    const where = `of the gateway at ${url}, which other processes do not share.`;
    const [first, second = ''] = shown.stdout.split('\n');
    assert.equal(first, `Read the counters ${where}`);
    assert.match(second, /^ {2}2 per year on key: 0 left, the next in \d+ s \(.*ratelimit\/limits\.yaml:3\)$/);
    assert.equal(await hit(), 429);
    const reset = await run(`reset gateway key=a --user demo --url ${url}/`);
    assert.match(
      reset.stdout,
      /^Reset the counters of the gateway at .*\n {2}2 per year on key: 2 left, all again in /,
    );
    assert.equal(await hit(), 200);
  });

  it('says what to do when it cannot reach the counters, or when nothing matches', async () => {
    const { run, url } = await setUp();
    for (const [args, message, input] of [
      ['show gateway key=a', /^frontdesk: the counters are in the memory of a running gateway: name an administrator/],
      [`show gateway key=a --user ann --url ${url}`, /the user is not an administrator/, 'secret\n'],
      [`show gateway key=a --user demo --url ${url}`, /does not accept the user and password/, 'wrong\n'],
      [`show gateway key=a --user demo --url ${url}`, /no password was entered/, ''],
      [
        `reset gateway kye=a --user demo --url ${url}`,
        /no limit of the domain "gateway" matches kye=a; the limits: key/,
      ],
      [`reset gatewy key=a --user demo --url ${url}`, /there is no domain "gatewy"; the domains: gateway/],
      ['reset gateway key --user demo', /write each entry as key=value, not "key"/],
      ['show gateway key=a --user demo --url 127.0.0.1', /--url is not a URL: write --url http:\/\/127\.0\.0\.1:8080/],
      ['show gateway key=a --user demo --url http://127.0.0.1:1', /there is no gateway at http:\/\/127\.0\.0\.1:1: /],
    ] as const) {
      const { code, stdout, stderr } = await run(args, input);
      assert.deepEqual([code, stdout], [1, ''], args);
      assert.match(stderr, message);
    }
  });

  it('shows each limit of a descriptor, and those without a number', async () => {
    const many = [
      domain('d', node('k', [limit(3, 'second', { unitMultiplier: 30 }), limit(9)]), node('free', unlimited)),
    ];
    const clientLimits = createClientLimits({ limits: () => many, counters: createMemoryCounters() });
    const shown = async (key: string) => {
      const found = await clientLimits.show({ domain: 'd', entries: [{ key, value: 'v' }] });
      return found.map((one) => [one.limit, one.left]);
    };
    assert.deepEqual(await shown('k'), [
      ['3 per 30 seconds', 3],
      ['9 per minute', 9],
    ]);
    assert.deepEqual(await shown('free'), [['unlimited', undefined]]);
  });

  describeWithRedis('with counters in Redis', ({ url }) => {
    it('shows and resets the limits of a client directly, and a running process admits it within two seconds', async () => {
      const { run, hit } = await setUp({ REDIS_URL: url() });
      assert.deepEqual([await hit(), await hit(), await hit()], [200, 200, 429]);
      assert.deepEqual([await hit('b'), await hit('b'), await hit('b')], [200, 200, 429]);
      const shown = await run('show gateway key=a');
      assert.match(
        shown.stdout,
        /^Read the counters in Redis at 127\.0\.0\.1:\d+\.\n {2}2 per year on key: 0 left, the next in /,
      );
      const reset = await run('reset gateway key=a');
      assert.match(
        reset.stdout,
        /^Reset the counters in Redis at .* notices within two seconds\.\n {2}2 per year on key: 2 left/,
      );
      const startMs = performance.now();
      let status = await hit();
      while (status === 429 && performance.now() - startMs < 30_000) status = await hit();
      assert.equal(status, 200);
      assert.equal(await hit('b'), 429);
    });

    it('admits a client whose counter was deleted in Redis, although its limit was cached as exhausted', async () => {
      const { hit } = await setUp({ REDIS_URL: url() });
      const key = 'deleted';
      assert.deepEqual([await hit(key), await hit(key), await hit(key), await hit(key)], [200, 200, 429, 429]);
      const counters = await keysOfRedis(url(), 'frontdesk:');
      const own = counters.filter((name) => name.includes(key));
      assert.equal(own.length, 1);
      await askRedis(url(), ['DEL', ...own]);
      const startMs = performance.now();
      let status = await hit(key);
      while (status === 429 && performance.now() - startMs < 30_000) status = await hit(key);
      assert.equal(status, 200);
    });

    it('names the server, the reason and the remedy when Redis cannot be used', async () => {
      const { run } = await setUp();
      const away = await run('show gateway key=a', '', { REDIS_URL: 'redis://127.0.0.1:1' });
      assert.match(
        away.stderr,
        /^frontdesk: the counters in Redis at 127\.0\.0\.1:1 cannot be reached: .*ECONNREFUSED/,
      );
      const wrong = await run('show gateway key=a', '', { REDIS_URL: url().replace('//', '//who:secret@') });
      assert.match(wrong.stderr, /WRONGPASS.*; check the user and the password in REDIS_URL/);
      const unmatched = await run('show gateway kye=a', '', { REDIS_URL: url() });
      assert.match(unmatched.stderr, /^frontdesk: no limit of the domain "gateway" matches kye=a; the limits: key\n$/);
    });
  });
});
