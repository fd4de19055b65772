/** Subsets of the modules with the demo's records: requests for other modules fail as documented. */
import assert from 'node:assert/strict';
import { connectRateLimit } from '#ratelimit';
import type { Listeners } from '#server';
import { type ModuleName, moduleNames } from '#server/product';
import { carBooking, hotelBooking } from '../conformance/desk.ts';
import { desksOf } from '../support/desks.ts';
import { testServers } from '../support/serve.ts';

const demo = { authorization: `Basic ${btoa('demo:demo')}` };

/** Every module alone, pairs that share a listener or call each other, and gateway and auth with all others but one. */
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
    // The addresses of the other modules refuse connections.
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

  it('looks for modules that are not in the process at the host of the same name', async () => {
    const desk = await open({ only: ['gateway', 'auth'] });
    const { gateway } = await desk.listen();
    const answer = await fetch(`${gateway.url}/gateway/v0/diag/`, { headers: demo });
    const { routes, services } = (await answer.json()) as Record<'routes' | 'services', Record<string, string>[]>;
    const targets = [...(routes ?? []), ...(services ?? [])].map(({ service, target }) => `${service}: ${target}`);
    for (const one of ['hotel: http://hotel:80', 'car: http://car:80', 'ratelimit: grpc://ratelimit:8081'])
      assert.ok(targets.includes(one), targets.join('\n'));
  });
});

/** The other two modules have separate listeners. */
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

/** The auth service is called first, so without it every response is 503. */
async function checkGateway(url: string, only: readonly ModuleName[]): Promise<void> {
  for (const [name, booking] of Object.entries(bookings)) {
    const path = `${url}/v1/${name}s/bookings/${booking}`;
    const isThere = only.includes(name as ModuleName);
    await assertStatus(path, only.includes('auth') ? 401 : 503);
    const answer = await assertStatus(path, isThere && only.includes('auth') ? 200 : 503, demo);
    assert.equal(answer.headers.has('retry-after'), answer.status === 503);
    // Requests for cars have no labels. Without a limiter, requests for hotels pass uncounted.
    const wantsTotal = name === 'hotel' && only.includes('auth') && only.includes('ratelimit');
    assert.equal(answer.headers.has('ratelimit'), wantsTotal);
  }
}

/** A single service is at the root, two are under their names. They trust the header that names the user. */
async function checkPlainServices(url: string, only: readonly ModuleName[]): Promise<void> {
  const there = Object.entries(bookings).filter(([name]) => only.includes(name as ModuleName));
  for (const [name, booking] of there) {
    const path = `${url}${there.length === 1 ? '' : `/${name}`}/bookings/${booking}`;
    await assertStatus(path, 401);
    await assertStatus(path, 200, { 'x-travel-user': 'demo' });
  }
}

const bookings = { hotel: hotelBooking, car: carBooking };

/** Returns the response, whose body has been read. Responses from 400 on must have the error body. */
async function assertStatus(url: string, status: number, headers: Record<string, string> = {}): Promise<Response> {
  const answer = await fetch(url, { headers });
  const body = (await answer.json()) as { code?: number };
  assert.equal(answer.status, status, `${url}: ${JSON.stringify(body)}`);
  if (status >= 400) assert.equal(body.code, status);
  return answer;
}
