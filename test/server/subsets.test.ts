/** Subsets of the modules run with the demo's records: those in the process answer, requests for the others fail as documented. */
import assert from 'node:assert/strict';
import { type ModuleName, moduleNames } from '#config';
import { connectRateLimit } from '#ratelimit';
import type { Listeners } from '#server';
import { carBooking, hotelBooking } from '../conformance/desk.ts';
import { desksOf } from '../support/desks.ts';
import { testServers } from '../support/serve.ts';

const demo = { authorization: `Basic ${btoa('demo:demo')}` };

/** Every module alone, pairs that share a listener or ask one another, and behind gateway and auth all others but one. */
const subsets: readonly (readonly ModuleName[])[] = [
  ...moduleNames.map((name) => [name]),
  ...([
    ['gateway', 'hotel'],
    ['hotel', 'car'],
    ['hotel', 'api'],
  ] as const),
  ...moduleNames.slice(2).map((away) => moduleNames.filter((name) => name !== away)),
];

describe('createFrontdesk with some of the modules', () => {
  const servers = testServers();
  const open = desksOf(servers);

  async function listen(only: readonly ModuleName[]): Promise<Listeners> {
    // Where the others would be nothing listens.
    const away = `127.0.0.1:${(await servers.refusing()).port}`;
    const serviceAddresses = { hotel: away, car: away, auth: away, ratelimit: away };
    const desk = await open({ only, serviceAddresses });
    return desk.listen();
  }

  for (const only of subsets) {
    it(`runs ${only.join(', ')}`, async () => {
      const { auth, ratelimit, gateway, ratelimitHttp, admin } = await listen(only);
      assert.deepEqual([ratelimitHttp, admin], [undefined, undefined]);
      assert.equal(auth !== undefined, only.includes('auth'));
      assert.equal(ratelimit !== undefined, only.includes('ratelimit'));
      assert.equal(gateway !== undefined, only.some(servesHttp));
      if (auth) await checkAuth(auth.url);
      if (ratelimit) await checkRateLimit(ratelimit.port);
      if (gateway) await checkHttp(gateway.url, only);
    });
  }

  it('leads what is named by the records and not in the process to the host of that name', async () => {
    const desk = await open({ only: ['gateway', 'auth'] });
    const { gateway } = await desk.listen();
    const answer = await fetch(`${gateway?.url}/gateway/v0/diag/`, { headers: demo });
    const { routes, services } = (await answer.json()) as Record<'routes' | 'services', Record<string, string>[]>;
    const targets = [...(routes ?? []), ...(services ?? [])].map(({ service, target }) => `${service}: ${target}`);
    for (const one of ['hotel: http://hotel:80', 'car: http://car:80', 'ratelimit: grpc://ratelimit:8081'])
      assert.ok(targets.includes(one), targets.join('\n'));
  });
});

/** The other two have listeners of their own. */
function servesHttp(name: ModuleName): boolean {
  return name !== 'auth' && name !== 'ratelimit';
}

async function checkAuth(url: string): Promise<void> {
  const answer = await fetch(url, { headers: demo });
  assert.deepEqual([answer.status, answer.headers.get('x-travel-user')], [200, 'demo']);
}

async function checkRateLimit(port: number): Promise<void> {
  const client = connectRateLimit({ target: () => ({ host: '127.0.0.1', port }), timeoutMs: 5000 });
  const entries = [{ key: 'x-gateway-test-allow', value: 'me' }];
  const { statuses } = await client.shouldRateLimit({ domain: 'gateway', descriptors: [{ entries }] });
  await client.close();
  assert.deepEqual(
    statuses.map(({ limitRemaining }) => limitRemaining),
    [9],
  );
}

async function checkHttp(url: string, only: readonly ModuleName[]): Promise<void> {
  await assertStatus(`${url}/gateway/v0/check_alive`, 200);
  await assertStatus(`${url}/gateway/v0/check_ready`, 200);
  for (const version of ['v1', 'v2'])
    await assertStatus(`${url}/${version}/messages/1`, only.includes('api') ? 200 : 404);
  if (only.includes('gateway')) await checkGateway(url, only);
  else await checkPlainServices(url, only);
}

/** The auth service is asked first: without it every answer is 503, even when another service is away. */
async function checkGateway(url: string, only: readonly ModuleName[]): Promise<void> {
  for (const [name, booking] of Object.entries(bookings)) {
    const path = `${url}/v1/${name}s/bookings/${booking}`;
    const isThere = only.includes(name as ModuleName);
    await assertStatus(path, only.includes('auth') ? 401 : 503);
    const answer = await assertStatus(path, isThere && only.includes('auth') ? 200 : 503, demo);
    assert.equal(answer.headers.has('retry-after'), answer.status === 503);
    // Requests for cars carry no labels. Without a limiter the others pass uncounted.
    const wantsTotal = name === 'hotel' && only.includes('auth') && only.includes('ratelimit');
    assert.equal(answer.headers.has('ratelimit'), wantsTotal);
  }
}

/** One service is at the root, two are under their names; they believe their caller's header. */
async function checkPlainServices(url: string, only: readonly ModuleName[]): Promise<void> {
  const there = Object.entries(bookings).filter(([name]) => only.includes(name as ModuleName));
  for (const [name, booking] of there) {
    const path = `${url}${there.length === 1 ? '' : `/${name}`}/bookings/${booking}`;
    await assertStatus(path, 401);
    await assertStatus(path, 200, { 'x-travel-user': 'demo' });
  }
}

const bookings = { hotel: hotelBooking, car: carBooking };

/** The answer, whose body is read; what is not found or refused has the error body. */
async function assertStatus(url: string, status: number, headers: Record<string, string> = {}): Promise<Response> {
  const answer = await fetch(url, { headers });
  const body = (await answer.json()) as { code?: number };
  assert.equal(answer.status, status, `${url}: ${JSON.stringify(body)}`);
  if (status >= 400) assert.equal(body.code, status);
  return answer;
}
