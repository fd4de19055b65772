/** Authentication: what the gateway refuses, and what the auth service answers to other proxies. */
import assert from 'node:assert/strict';
import request from 'supertest';
import { rawRequest, sendRaw } from '../support/wire/raw-client.ts';
import { call, callAsDemo, carBooking, hotelBooking, type Method, type OpenDesk } from './desk.ts';

const challenge = 'Basic realm="travel", charset="UTF-8"';
const basic = (text: string) => `Basic ${Buffer.from(text).toString('base64')}`;

export function authenticationCases(desk: OpenDesk): void {
  describe('authentication', () => {
    it('answers 401 without credentials, with a challenge and the error body', async () => {
      const hotels = ['/v1/hotels', '/v1/hotels/', '/v1/hotels/bookings/', `/v1/hotels/bookings/${hotelBooking}`];
      const others = ['/v1/hotels/nowhere', '/v1/cars', `/v1/cars/bookings/${carBooking}`, '/gateway/v0/diag/'];
      for (const path of [...hotels, ...others]) {
        const { body, headers } = await call(desk, path).expect(401).expect('WWW-Authenticate', challenge);
        const { info_url: _page, ...rest } = body;
        assert.deepEqual(rest, { code: 401, message: '401: Unauthorized' }, path);
        assert.equal(headers['content-type'], 'application/json');
      }
    });

    for (const [what, authorization] of Object.entries({
      'a wrong password': basic('demo:wrong'),
      'an unknown user': basic('nobody:demo'),
      'an empty password': basic('demo:'),
      'no colon': basic('demo'),
      'no base64': 'Basic ???',
      'nothing after the scheme': 'Basic',
      'another scheme': basic('demo:demo').replace('Basic', 'Bearer'),
      'the name in capitals': basic('DEMO:demo'),
    })) {
      it(`answers 401 to ${what}`, async () => {
        const refused = call(desk, '/v1/hotels').set('Authorization', authorization);
        const { body } = await refused.expect(401).expect('WWW-Authenticate', challenge);
        assert.equal(body.code, 401);
      });
    }

    it('passes matching credentials in any case of the scheme, and goes on to refuse others', async () => {
      for (const scheme of ['Basic', 'basic', 'BASIC'])
        await call(desk, '/v1/hotels').set('Authorization', basic('demo:demo').replace('Basic', scheme)).expect(200);
      await call(desk, '/v1/hotels').auth('demo', 'wrong').expect(401);
      await callAsDemo(desk, '/v1/hotels').expect(200);
    });

    it('comes after routing: an unknown path is 404 without credentials', async () => {
      await call(desk, '/v9/hotels').expect(404);
    });
  });
}

const methods: readonly Method[] = ['get', 'head', 'post', 'put', 'patch', 'delete', 'options'];

export function authServiceCases(desk: OpenDesk): void {
  const ask = (method: Method, path: string) => request(desk().authUrl)[method](path);

  describe('the auth service', () => {
    it('answers 200 and the name of the user to any path', async () => {
      for (const path of ['/', '/v1/hotels/', '/v1/hotels/bookings/1', '/anything/at/all?with=a&query'])
        for (const user of ['demo', 'guest'])
          await ask('get', path).auth(user, user).expect(200).expect('X-Travel-User', user);
    });

    it('answers to paths that the gateway would refuse', async () => {
      const port = Number(new URL(desk().authUrl).port);
      for (const path of ['//x', '/a/../b', '/%2e%2e/x', '/%', '/%00', '/x#y', 'http://[/x', '/gateway/v0/diag/']) {
        const send = (...headers: string[]) => sendRaw(port, rawRequest(`GET ${path}`, headers));
        assert.match(await send(`Authorization: ${basic('demo:demo')}`), /^HTTP\/1\.1 200 OK\r\n/, path);
        assert.match(await send(), /^HTTP\/1\.1 401 Unauthorized\r\n/, path);
      }
    });

    it('answers to any method, and to a request for an upgrade', async () => {
      const requests = methods.map((method) => () => ask(method, '/v1/hotels'));
      const upgrade = () => ask('get', '/').set({ Connection: 'Upgrade', Upgrade: 'websocket' });
      for (const send of [...requests, upgrade]) {
        await send().auth('demo', 'demo').expect(200).expect('X-Travel-User', 'demo');
        await send().expect(401);
      }
    });

    it('answers 401 and a challenge to other credentials, without a name; a name in the request changes nothing', async () => {
      const wrong = ask('get', '/').auth('demo', 'wrong');
      for (const refused of [ask('get', '/').set('X-Travel-User', 'guest'), wrong, ask('get', '/').auth('x', 'demo')]) {
        const { headers } = await refused.expect(401, { code: 401, message: '401: Unauthorized' });
        assert.deepEqual([headers['www-authenticate'], headers['x-travel-user']], [challenge, undefined]);
      }
      await ask('get', '/').set('X-Travel-User', 'guest').auth('demo', 'demo').expect('X-Travel-User', 'demo');
    });
  });
}
