/** Authentication: what the gateway rejects, and how the auth service responds to other proxies. */
import assert from 'node:assert/strict';
import { call, callAsDemo, callAt, carBooking, getPath, hotelBooking, type Method, type OpenDesk } from './desk.ts';

const challenge = 'Basic realm="travel", charset="UTF-8"';
const basic = (text: string) => `Basic ${Buffer.from(text).toString('base64')}`;

export function authenticationCases(desk: OpenDesk): void {
  describe('authentication', () => {
    it('responds 401 with a challenge and the error body to requests without credentials', async () => {
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
      'credentials without a colon': basic('demo'),
      'credentials that are not base64': 'Basic ???',
      'a scheme without credentials': 'Basic',
      'another scheme': basic('demo:demo').replace('Basic', 'Bearer'),
      'a user name in capitals': basic('DEMO:demo'),
    })) {
      it(`responds 401 to ${what}`, async () => {
        const refused = call(desk, '/v1/hotels').set('Authorization', authorization);
        const { body } = await refused.expect(401).expect('WWW-Authenticate', challenge);
        assert.equal(body.code, 401);
      });
    }

    it('accepts valid credentials with the scheme in any case, and still rejects others afterwards', async () => {
      for (const scheme of ['Basic', 'basic', 'BASIC'])
        await call(desk, '/v1/hotels').set('Authorization', basic('demo:demo').replace('Basic', scheme)).expect(200);
      await call(desk, '/v1/hotels').auth('demo', 'wrong').expect(401);
      await callAsDemo(desk, '/v1/hotels').expect(200);
    });

    it('happens after routing: an unknown path is 404 even without credentials', async () => {
      await call(desk, '/v9/hotels').expect(404);
    });
  });
}

const methods: readonly Method[] = ['get', 'head', 'post', 'put', 'patch', 'delete', 'options'];

export function authServiceCases(desk: OpenDesk): void {
  const callAuth = (method: Method, path: string) => callAt(desk, 'authUrl', path, method);

  describe('the auth service', () => {
    it('responds 200 with the name of the user on any path', async () => {
      for (const path of ['/', '/v1/hotels/', '/v1/hotels/bookings/1', '/anything/at/all?with=a&query'])
        for (const user of ['demo', 'guest'])
          await callAuth('get', path).auth(user, user).expect(200).expect('X-Travel-User', user);
    });

    it('accepts paths that the gateway would reject', async () => {
      const paths = ['//x', '/a/../b', '/%2e%2e/x', '/%', '/%00', '/x#y', '/gateway/v0/diag/'];
      // HTTP/2 has only paths that begin with a slash (RFC 9113 section 8.3.1).
      for (const path of desk().http2 ? paths : [...paths, 'http://[/x']) {
        const statusWith = async (headers = {}) => (await getPath(desk, 'authUrl', path, headers)).status;
        assert.equal(await statusWith({ authorization: basic('demo:demo') }), 200, path);
        assert.equal(await statusWith(), 401, path);
      }
    });

    it('accepts any method and upgrade requests', async () => {
      const requests = methods.map((method) => () => callAuth(method, '/v1/hotels'));
      const upgrade = () => callAuth('get', '/').set({ Connection: 'Upgrade', Upgrade: 'websocket' });
      // HTTP/2 has no upgrades of this kind (RFC 9113 section 8.6).
      for (const send of desk().http2 ? requests : [...requests, upgrade]) {
        await send().auth('demo', 'demo').expect(200).expect('X-Travel-User', 'demo');
        await send().expect(401);
      }
    });

    it('responds 401 with a challenge and no name to other credentials, whatever name the request has', async () => {
      const wrong = callAuth('get', '/').auth('demo', 'wrong');
      for (const refused of [
        callAuth('get', '/').set('X-Travel-User', 'guest'),
        wrong,
        callAuth('get', '/').auth('x', 'demo'),
      ]) {
        const { headers } = await refused.expect(401, { code: 401, message: '401: Unauthorized' });
        assert.deepEqual([headers['www-authenticate'], headers['x-travel-user']], [challenge, undefined]);
      }
      await callAuth('get', '/').set('X-Travel-User', 'guest').auth('demo', 'demo').expect('X-Travel-User', 'demo');
    });
  });
}
