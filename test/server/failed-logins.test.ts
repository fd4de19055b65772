/** A flood of guessed passwords: how it is throttled, and how other users are unaffected. */
import assert from 'node:assert/strict';
import type { RequestListener } from 'node:http';
import request from 'supertest';
import type { Frontdesk } from '../../src/index.ts';
import { annRecord, authRecord, demoRecord, desksOf, mappingRecord } from '../support/desks.ts';
import { testServers } from '../support/serve.ts';

describe('a flood of guessed passwords', () => {
  const open = desksOf(testServers());

  /** Trusts loopback as a proxy, so that a test can send requests from any address. */
  const openDesk = (trustedProxies: readonly string[] = ['127.0.0.1', '::ffff:127.0.0.1']) =>
    open({
      config: { records: [mappingRecord('app', '/', 'app'), authRecord], users: [annRecord, demoRecord] },
      services: {
        app(ctx) {
          ctx.body = 'fine';
        },
      },
      trustedProxies,
    });

  /** `peer` replaces the address of the connection, which is loopback. */
  function from(desk: Frontdesk, address: string, peer?: string) {
    const listener = desk.app.callback();
    const receive: RequestListener = (req, res) => {
      if (peer !== undefined) Object.defineProperty(req.socket, 'remoteAddress', { value: peer });
      return listener(req, res);
    };
    return (user: string, password: string) =>
      request(receive).get('/').set('X-Forwarded-For', address).auth(user, password);
  }

  async function flood(login: ReturnType<typeof from>, user: (guess: number) => string, guesses: number) {
    const statuses: number[] = [];
    for (let guess = 0; guess < guesses; guess += 1) statuses.push((await login(user(guess), `guess ${guess}`)).status);
    return statuses;
  }

  it('gets 429 with Retry-After after a few guesses, while other and remembered logins succeed', async () => {
    const desk = await openDesk();
    const [guesser, other] = [from(desk, '203.0.113.7'), from(desk, '198.51.100.9')];
    await guesser('ann', 'secret').expect(200);
    const statuses = await flood(guesser, () => 'demo', 12);
    assert.deepEqual(statuses, [...Array(11).fill(401), 429]);
    const { body, headers } = await guesser('demo', 'demo').expect(429);
    assert.match(String(headers['retry-after']), /^[1-9]\d*$/);
    assert.match(body.info_url, /\/gateway\/v0\/problems\/login-throttled$/);
    assert.match(body.detail, /^Too many logins from your address, or for this user from your address, have failed/);
    await other('demo', 'demo').expect(200);
    await guesser('ann', 'secret').expect(200);
  });

  it('with many names is throttled by address, or by /64 in IPv6', async () => {
    const desk = await openDesk();
    const address = (host: number) => from(desk, `2001:db8:0:1::${host.toString(16)}`);
    const statuses = await Promise.all(
      Array.from({ length: 40 }, async (_, guess) => (await address(guess)(`user-${guess}`, 'guess')).status),
    );
    assert.deepEqual([...new Set(statuses)].sort(), [401, 429]);
    await address(100)('demo', 'demo').expect(429);
    await from(desk, '2001:db8:0:2::1')('demo', 'demo').expect(200);
  });

  it('with many names is throttled although the client sends X-Forwarded-For, which only proxies should', async () => {
    const desk = await openDesk([]);
    const statuses = await flood(from(desk, '192.0.2.1', '203.0.113.7'), (guess) => `user-${guess}`, 40);
    assert.deepEqual(statuses, [...Array(31).fill(401), ...Array(9).fill(429)]);
    await from(desk, '192.0.2.1', '198.51.100.9')('demo', 'demo').expect(200);
  });

  for (const [what, trustedProxies, peer] of [
    ['loopback', [], undefined],
    ['loopback, with other proxies trusted', ['10.0.0.0/8'], undefined],
    ['a private address, which may be a proxy,', [], '172.18.0.2'],
  ] as const)
    it(`from ${what} is throttled only for the guessed name`, async () => {
      const desk = await openDesk(trustedProxies);
      const login = from(desk, '203.0.113.7', peer);
      assert.ok(!(await flood(login, (guess) => `user-${guess}`, 40)).includes(429));
      assert.equal((await flood(login, () => 'demo', 12)).at(-1), 429);
      await login('ann', 'secret').expect(200);
    });

  it('gets 401 with Retry-After from the auth listener, because some proxies expect 401 for a refusal', async () => {
    const desk = await openDesk();
    const { auth } = await desk.listen();
    const login = (password: string) =>
      request(auth.url).get('/').set('X-Forwarded-For', '203.0.113.7').auth('demo', password);
    for (let guess = 0; guess < 11; guess += 1) {
      const { headers } = await login(`guess ${guess}`).expect(401);
      assert.equal(headers['retry-after'], undefined);
    }
    const { headers } = await login('demo').expect(401);
    assert.match(String(headers['retry-after']), /^[1-9]\d*$/);
    assert.match(String(headers['www-authenticate']), /^Basic /);
  });
});
