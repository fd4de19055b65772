/** Envoy as the recipe configures it: it calls the auth service and the limiter. */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import request, { type Response } from 'supertest';
import { describeWith } from '../support/programs/installed.ts';
import { envoy } from '../support/programs/proxy-process.ts';
import { testServers } from '../support/serve.ts';
import { temporaryFiles } from '../support/temporary-files.ts';
import { startUpstream, type Upstream } from '../support/upstream.ts';
import { authCallerCases } from './auth-caller.ts';
import { type EnvoyPeer, readEnvoyRecipe, startEnvoyPeer } from './envoy-peer.ts';

/** The recipe's limit for each key. */
const perDay = 100;

/** With this time-out, a stop that waits for more than the requests in flight outlasts the tests. */
const patientStop = { SHUTDOWN_TIMEOUT_MS: '600000' };

describeWith('envoy', 'Envoy in front of a service, with the auth service', () => {
  const servers = testServers(after);
  let limits = 0;

  before(async () => {
    limits = (await servers.refusing()).port;
  });

  authCallerCases({
    program: envoy,
    // The auth services of these tests have no admin port.
    recipe: (ports) => readEnvoyRecipe({ ...ports, limits, admin: ports.auth }),
    unavailable: 503,
  });
});

describeWith('envoy', 'Envoy in front of a service, with the auth service and the limiter', () => {
  const writeFiles = temporaryFiles();
  const servers = testServers(after);
  let upstream: Upstream;
  let peer: EnvoyPeer;
  let keys = 0;

  before(async () => {
    upstream = await startUpstream(servers);
    peer = await startEnvoyPeer(servers, { writeFiles, upstream: upstream.port, env: patientStop });
  });

  const nextKey = () => {
    keys += 1;
    return `key-${keys}`;
  };
  const ask = (key: string, user = 'demo', { proxy } = peer): Promise<Response> =>
    Promise.resolve(request(proxy.origin).get('/').set('X-Api-Key', key).auth(user, user));
  const askAtOnce = (key: string, count: number): Promise<readonly Response[]> =>
    Promise.all(Array.from({ length: count }, (_, index) => ask(key, index % 2 === 0 ? 'demo' : 'guest')));

  it('finds both services healthy', () => peer.isHealthy(true));

  it("shows clients the limit with the least remaining, in Envoy's headers", async () => {
    const { status, headers } = await ask(nextKey());
    assert.equal(status, 200);
    assert.equal(headers['x-ratelimit-limit'], '100, 100;w=86400, 6000;w=60');
    assert.equal(headers['ratelimit-limit'], undefined);
    assert.equal(headers['x-ratelimit-remaining'], String(perDay - 1));
    assert.match(String(headers['x-ratelimit-reset']), /^\d+$/);
  });

  it('counts requests with the longest header that Envoy accepts', async () => {
    const key = nextKey().padEnd(60_000, 'x');
    for (const left of [1, 2]) assert.equal((await ask(key)).headers['x-ratelimit-remaining'], String(perDay - left));
  });

  it('admits exactly as many of 500 concurrent requests as the limit allows, each with its user', async () => {
    const key = nextKey();
    const before = upstream.reached.length;
    const answers = await askAtOnce(key, 500);
    const passed = answers.filter(({ status }) => status === 200);
    const refused = answers.filter(({ status }) => status === 429);
    assert.deepEqual([passed.length, refused.length], [perDay, 400]);
    for (const { headers } of refused) assert.equal(headers['x-ratelimit-remaining'], '0');
    const users = upstream.reached.slice(before).map(({ headers }) => headers['x-travel-user']);
    assert.equal(users.length, perDay);
    for (const user of users) assert.ok(user === 'demo' || user === 'guest', String(user));
    assert.equal((await ask(nextKey())).status, 200);
  });

  it('shows the headers of the rate-limit service instead, and lets that service stop', async () => {
    const changes = {
      'enable_x_ratelimit_headers: DRAFT_VERSION_03': 'enable_x_ratelimit_headers: "OFF"',
      // A failed health check would make Envoy close its connections.
      'interval: 1s': 'interval: 600s',
    };
    const env = { RATELIMIT_RESPONSE_HEADERS: 'true', ...patientStop };
    const other = await startEnvoyPeer(servers, { writeFiles, upstream: upstream.port, changes, env });
    const key = nextKey();
    const headersOf = ({ headers }: Response) =>
      Object.entries(headers).filter(([name]) => /ratelimit-(?:limit|remaining)$/.test(name));
    for (const left of [99, 98]) {
      const answer = await ask(key, 'demo', other);
      assert.equal(answer.status, 200);
      assert.deepEqual(headersOf(answer), [
        ['ratelimit-limit', '100'],
        ['ratelimit-remaining', String(left)],
      ]);
    }
    await Promise.all(Array.from({ length: 50 }, () => ask(nextKey(), 'demo', other)));
    // Envoy's connections are idle now.
    assert.equal((await other.server().stop()).code, 0);
  });

  it('sends requests to one process while the other stops and starts again', async () => {
    const other = await startEnvoyPeer(servers, {
      writeFiles,
      upstream: upstream.port,
      env: patientStop,
      hasReplica: true,
    });
    await other.isHealthy(true);
    const answers: string[] = [];
    let isOver = false;
    const going = Array.from({ length: 4 }, async () => {
      while (!isOver) {
        const { status, text } = await ask(nextKey(), 'demo', other);
        answers.push(`${status} ${text}`);
        // Stays within the limit by address.
        await sleep(20);
      }
    });
    const { code } = await other.server().stop();
    await other.isHealthy(false);
    await other.startAgain();
    await other.isHealthy(true);
    isOver = true;
    await Promise.all(going);
    assert.equal(code, 0);
    // Without draining, Envoy fails one request in sixteen.
    // Envoy's text says which upstream failed: that of a failed auth service is empty.
    assert.deepEqual(
      answers.filter((answer) => answer !== '200 ok'),
      [],
    );
  });

  it('lets both services stop under load, responds with 200 or 503 meanwhile, and recovers when they restart', async () => {
    const statuses = new Set<number>();
    let isOver = false;
    const going = (async () => {
      while (!isOver) statuses.add((await ask(nextKey())).status);
    })();
    assert.equal((await peer.server().stop()).code, 0);
    await peer.isHealthy(false);
    assert.equal((await ask(nextKey())).status, 503);
    await peer.startAgain();
    await peer.isHealthy(true);
    isOver = true;
    await going;
    assert.deepEqual([...statuses].toSorted(), [200, 503]);
    const key = nextKey();
    for (const left of [99, 98]) {
      const { status, headers } = await ask(key);
      assert.deepEqual([status, headers['x-ratelimit-remaining']], [200, String(left)]);
    }
  });
});
