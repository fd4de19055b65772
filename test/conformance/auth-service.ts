/** Section 4: the auth service on its own port, as another proxy asks it: any path, any method. */
import assert from 'node:assert/strict';
import request from 'supertest';
import { rawRequest, sendRaw } from '../support/raw-client.ts';
import type { Method, OpenDesk } from './desk.ts';

const paths = ['/', '/v1/hotels', '/v1/hotels/bookings/1', '/anything/at/all?with=a&query', '/v1/hotels/'];
const methods: readonly Method[] = ['get', 'head', 'post', 'put', 'patch', 'delete', 'options'];

export function authServiceCases(desk: OpenDesk): void {
  const ask = (method: Method, path: string) => request(desk().authUrl)[method](path);

  describe('the auth service', () => {
    for (const path of paths) {
      it(`answers 200 and the user's name to credentials that match: ${path}`, async () => {
        await ask('get', path).auth('demo', 'demo').expect(200).expect('X-Travel-User', 'demo');
        await ask('get', path).auth('guest', 'guest').expect(200).expect('X-Travel-User', 'guest');
      });
    }

    it('looks at the credentials alone, whatever the path', async () => {
      const port = Number(new URL(desk().authUrl).port);
      for (const path of ['//x', '/a/../b', '/%2e%2e/x', '/%', '/%00', '/x#y', 'http://[/x', '/gateway/v0/diag/']) {
        const ask = (...headers: string[]) => sendRaw(port, rawRequest(`GET ${path}`, headers));
        assert.match(await ask(`Authorization: Basic ${btoa('demo:demo')}`), /^HTTP\/1\.1 200 OK\r\n/, path);
        assert.match(await ask(), /^HTTP\/1\.1 401 Unauthorized\r\n/, path);
      }
    });

    it('looks at the credentials alone, whatever protocol is asked for', async () => {
      const ask = () => request(desk().authUrl).get('/').set({ Connection: 'Upgrade', Upgrade: 'websocket' });
      await ask().auth('demo', 'demo').expect(200).expect('X-Travel-User', 'demo');
      await ask().expect(401);
    });

    for (const method of methods) {
      it(`looks at the credentials alone, whatever the method: ${method.toUpperCase()}`, async () => {
        await ask(method, '/v1/hotels').auth('demo', 'demo').expect(200).expect('X-Travel-User', 'demo');
        await ask(method, '/v1/hotels').expect(401);
      });
    }

    it('answers 401 and a challenge to everything else, and names nobody', async () => {
      const refused = [ask('get', '/'), ask('get', '/').auth('demo', 'wrong'), ask('get', '/').auth('nobody', 'demo')];
      for (const test of refused) {
        await test
          .expect(401, { code: 401, message: '401: Unauthorized' })
          .expect('WWW-Authenticate', 'Basic realm="travel", charset="UTF-8"')
          .expect(({ headers }) => !('x-travel-user' in headers));
      }
    });

    it('takes no word from the client on who it is', async () => {
      await ask('get', '/').set('X-Travel-User', 'guest').expect(401);
      await ask('get', '/').set('X-Travel-User', 'guest').auth('demo', 'demo').expect('X-Travel-User', 'demo');
    });
  });
}
