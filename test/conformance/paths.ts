/** Section 4, rules 2 to 4, and the settled points on paths: redirects, boundaries, and paths that mean two things. */
import assert from 'node:assert/strict';
import { bareProblem } from '../support/error-body.ts';
import { rawRequest, sendRaw } from '../support/raw-client.ts';
import { below, call, callAsDemo, carBooking, hotelBooking, mountPath, type OpenDesk } from './desk.ts';

const collections = [
  '/v1',
  '/v2',
  '/v1/messages',
  '/v2/messages',
  '/v1/accounts',
  '/v1/accounts/demo/messages',
  '/v1/hotels/bookings',
  '/v1/cars/bookings',
  '/gateway/v0/diag',
];

const items = [
  '/v1/messages/1/',
  '/v2/messages/1/',
  '/v1/accounts/demo/',
  `/v1/hotels/bookings/${hotelBooking}/`,
  `/v1/cars/bookings/${carBooking}/`,
  '/v1//',
  '/v1/messages//',
  '/v1/hotels/bookings//',
];

/** Paths as bytes, with what they must come to; each is asked for with good credentials. */
const rawPaths: readonly (readonly [string, number])[] = [
  ['/v1/../v2/messages/1', 400],
  ['/v1/./messages/1', 400],
  ['/v1/messages/..', 400],
  ['/v1/messages/.', 400],
  ['/v1/%2e%2e/v2/messages/1', 400],
  ['/v1/%2E%2E/v2/messages/1', 400],
  ['/v1/.%2e/v2/messages/1', 400],
  ['/v1/%252e%252e/v2/messages/1', 400],
  ['/v1/..%2fv2/messages/1', 400],
  ['/v1/..;/v2/messages/1', 400],
  ['/v1/hotels/../cars', 400],
  ['/v1/hotels/%2e%2e/cars', 400],
  ['/v1\\messages\\1', 400],
  ['/v1/messages%5c1', 400],
  ['/v1/messages/1%00', 400],
  ['/v1/messages/1%0d%0aX-Forged:1', 400],
  ['/v1/messages/%', 400],
  ['/v1/messages/%zz', 400],
  ['//v1/messages/1', 200],
  ['///v1/messages/1', 200],
  ['//v1/hotels', 200],
  ['/%76%31/messages/1', 200],
  ['/v1/%6dessages/1', 200],
  ['/v1/messages/%31', 200],
  ['/v1/...', 404],
  ['/v1//messages/1', 404],
  ['/v1/messages%2F1', 404],
  ['/v1/hotels%2Fbookings', 404],
];

export function pathCases(desk: OpenDesk): void {
  describe('the canonical slash', () => {
    for (const path of collections) {
      it(`redirects ${path} to its slash for good, keeping query and mount path`, async () => {
        const { headers } = await callAsDemo(desk, `${path}?limit=1&q=a%20b`).expect(308);
        assert.equal(headers['location'], `${mountPath(desk)}${path}/?limit=1&q=a%20b`);
      });
    }

    it('leads to an answer when the redirect is followed', async () => {
      const { headers } = await call(desk, '/v1/accounts/demo/messages?limit=1').expect(308);
      const { body } = await call(desk, below(desk, headers['location'] ?? '')).expect(200);
      assert.equal(body.items.length, 1);
    });

    it('redirects only what would answer: a path without any meaning is 404', async () => {
      for (const path of ['/v1/nowhere', '/v1/hotels/nowhere', '/v1/accounts/demo/nowhere']) {
        await callAsDemo(desk, path).expect(404);
      }
    });

    for (const path of items) {
      it(`answers 404 and the error body to ${path}`, async () => {
        await callAsDemo(desk, path).expect(bareProblem('not-found'));
      });
    }
  });

  describe('prefixes', () => {
    for (const path of [
      '/v1/hotelsx',
      '/v1/hotels-x',
      '/v1/carsx/',
      '/v1/hotel',
      '/v1/hotels.json',
      '/v1/hotels;a=1',
    ]) {
      it(`match whole segments: ${path} is 404`, async () => {
        await callAsDemo(desk, path).expect(404);
      });
    }

    for (const path of ['/V1/hotels', '/v1/Hotels', '/V1/messages/1', '/v1/Messages/1', '/gateway/v0/DIAG/']) {
      it(`tell capitals from small letters: ${path} is 404`, async () => {
        await callAsDemo(desk, path).expect(404);
      });
    }
  });

  describe('paths that could be read in two ways', () => {
    for (const [path, status] of rawPaths) {
      it(`${status === 400 ? 'are refused' : `come to ${status}`}: ${path}`, async () => {
        assert.equal(await rawStatus(desk, path), status);
      });
    }

    it('never lead to another host by a redirect', async () => {
      const answer = await sendTo(desk, '//evil.example/%2e%2e/v1/messages');
      assert.doesNotMatch(answer, /^location: *(?:\/\/|\/\\|http)/im);
      const collapsed = await sendTo(desk, '///v1/messages');
      assert.match(collapsed, new RegExp(`^location: ${mountPath(desk)}/v1/messages/\\r$`, 'im'));
    });
  });
}

async function rawStatus(desk: OpenDesk, path: string): Promise<number> {
  return Number(/^HTTP\/1\.1 (\d+)/.exec(await sendTo(desk, path))?.[1]);
}

/** Past every client library, since each would tidy the path first. */
function sendTo(desk: OpenDesk, path: string): Promise<string> {
  const { port } = new URL(desk().gatewayUrl);
  const authorization = `Authorization: Basic ${Buffer.from('demo:demo').toString('base64')}`;
  return sendRaw(Number(port), rawRequest(`GET ${mountPath(desk)}${path}`, [authorization]));
}
