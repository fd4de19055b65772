/** Section 5: who may pass, and what everybody else is told. */
import assert from 'node:assert/strict';
import { call, callAsDemo, carBooking, hotelBooking, type OpenDesk } from './desk.ts';

const routed = [
  '/v1/hotels',
  '/v1/hotels/',
  '/v1/hotels/bookings/',
  `/v1/hotels/bookings/${hotelBooking}`,
  '/v1/hotels/nowhere',
  '/v1/cars',
  `/v1/cars/bookings/${carBooking}`,
  '/gateway/v0/diag/',
];

const challenge = 'Basic realm="travel", charset="UTF-8"';

export function authenticationCases(desk: OpenDesk): void {
  describe('authentication', () => {
    for (const path of routed) {
      it(`answers 401 to ${path} without credentials, with a challenge and the error body`, async () => {
        await call(desk, path)
          .expect(401)
          .expect(({ body: { info_url: _page, ...rest } }) =>
            // An auth service in another process writes the body, and has no pages.
            assert.deepEqual(rest, { code: 401, message: '401: Unauthorized' }),
          )
          .expect('Content-Type', 'application/json')
          .expect('WWW-Authenticate', challenge);
      });
    }

    const refused: readonly (readonly [string, string])[] = [
      ['a wrong password', basic('demo:wrong')],
      ['an unknown user', basic('nobody:demo')],
      ['an empty password', basic('demo:')],
      ['no colon', basic('demo')],
      ['no base64', 'Basic ???'],
      ['nothing after the scheme', 'Basic'],
      ['another scheme', `Bearer ${Buffer.from('demo:demo').toString('base64')}`],
      ['the name in capitals', basic('DEMO:demo')],
    ];
    for (const [what, authorization] of refused) {
      it(`answers 401 to ${what}`, async () => {
        const { body } = await call(desk, '/v1/hotels')
          .set('Authorization', authorization)
          .expect(401)
          .expect('WWW-Authenticate', challenge);
        assert.equal(body.code, 401);
      });
    }

    it('lets matching credentials pass, however the scheme is spelt', async () => {
      const credentials = basic('demo:demo').slice('Basic '.length);
      for (const scheme of ['Basic', 'basic', 'BASIC']) {
        await call(desk, '/v1/hotels').set('Authorization', `${scheme} ${credentials}`).expect(200);
      }
    });

    it('refuses a wrong password after the right one as before it', async () => {
      await callAsDemo(desk, '/v1/cars').expect(200);
      await call(desk, '/v1/cars').auth('demo', 'wrong').expect(401);
      await callAsDemo(desk, '/v1/cars').expect(200);
    });

    it('asks nobody for credentials where there is nothing: 404 comes first', async () => {
      await call(desk, '/v9/hotels').expect(404);
    });
  });
}

function basic(text: string): string {
  return `Basic ${Buffer.from(text).toString('base64')}`;
}
