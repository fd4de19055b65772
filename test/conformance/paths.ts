/** Paths and methods: trailing slashes, whole segments, ambiguous paths, and which methods are allowed. */
import assert from 'node:assert/strict';
import { bareProblem } from '../support/error-body.ts';
import {
  below,
  call,
  callAsDemo,
  carBooking,
  getPath,
  hotelBooking,
  type Method,
  mountPath,
  type OpenDesk,
} from './desk.ts';

const bookings = ['/v1/hotels/bookings', '/v1/cars/bookings'];
const bookingItems = [`/v1/hotels/bookings/${hotelBooking}`, `/v1/cars/bookings/${carBooking}`];
const versioned = ['/v1', '/v2', '/v1/messages', '/v2/messages', '/v1/accounts', '/v1/accounts/demo/messages'];
const collections = [...versioned, ...bookings, '/gateway/v0/diag', '/gateway/v0/problems'];
const items = ['/v1/messages/1', '/v2/messages/1', '/v1/accounts/demo', ...bookingItems];

/** Raw paths by the status that they must get with valid credentials. */
const rawPaths: Readonly<Record<number, readonly string[]>> = {
  400: [
    '/v1/../v2/messages/1',
    '/v1/./messages/1',
    '/v1/messages/..',
    '/v1/messages/.',
    '/v1/hotels/../cars',
    '/v1/%2e%2e/v2/messages/1',
    '/v1/%2E%2E/v2/messages/1',
    '/v1/.%2e/v2/messages/1',
    '/v1/hotels/%2e%2e/cars',
    '/v1/%252e%252e/v2/messages/1',
    '/v1/..%2fv2/messages/1',
    '/v1/..;/v2/messages/1',
    '/v1\\messages\\1',
    '/v1/messages%5c1',
    '/v1/messages/1%00',
    '/v1/messages/1%0d%0aX-Forged:1',
    '/v1/messages/%',
    '/v1/messages/%zz',
    '//v1/messages/1',
    '///v1/messages/1',
    '//v1/hotels',
    '//evil.example/v1/messages',
  ],
  200: ['/%76%31/messages/1', '/v1/%6dessages/1', '/v1/messages/%31'],
  404: ['/v1/...', '/v1//messages/1', '/v1/messages%2F1', '/v1/hotels%2Fbookings'],
};

export function pathCases(desk: OpenDesk): void {
  const sendBytes = (path: string) =>
    getPath(desk, 'gatewayUrl', `${mountPath(desk)}${path}`, { authorization: `Basic ${btoa('demo:demo')}` });

  describe('paths', () => {
    it('of collections end in a slash: a 308 redirects there with the query and the mount path', async () => {
      for (const path of collections) {
        const { headers } = await callAsDemo(desk, `${path}?limit=1&q=a%20b`).expect(308);
        assert.equal(headers['location'], `${mountPath(desk)}${path}/?limit=1&q=a%20b`);
      }
      const { headers } = await call(desk, '/v1/accounts/demo/messages?limit=1').expect(308);
      const { body } = await call(desk, below(desk, headers['location'] ?? '')).expect(200);
      assert.equal(body.items.length, 1);
    });

    it('of items have no trailing slash, and no path has an empty segment: 404', async () => {
      for (const path of [...items, '/v1/', '/v1/messages/', '/v1/hotels/bookings/'])
        await callAsDemo(desk, `${path}/`).expect(bareProblem('not-found'));
    });

    it('of unknown resources are 404 without a redirect', async () => {
      for (const path of ['/v1/nowhere', '/v1/hotels/nowhere', '/v1/accounts/demo/nowhere'])
        await callAsDemo(desk, path).expect(404);
    });

    it('match whole segments, case-sensitively', async () => {
      const longer = ['/v1/hotelsx', '/v1/hotels-x', '/v1/carsx/', '/v1/hotel', '/v1/hotels.json', '/v1/hotels;a=1'];
      const capitals = ['/V1/hotels', '/v1/Hotels', '/V1/messages/1', '/v1/Messages/1', '/gateway/v0/DIAG/'];
      for (const path of [...longer, ...capitals]) await callAsDemo(desk, path).expect(404);
    });

    for (const [status, paths] of Object.entries(rawPaths)) {
      it(`that servers interpret differently are normalised or rejected: ${status}`, async () => {
        for (const path of paths) assert.equal(String((await sendBytes(path)).status), status, path);
      });
    }

    it('never redirect to another host', async () => {
      for (const path of ['//evil.example/%2e%2e/v1/messages', '//evil.example/v1/messages', '///v1/messages'])
        assert.equal((await sendBytes(path)).location, undefined);
    });
  });

  describe('methods', () => {
    const probes = ['/gateway/v0/check_alive', '/gateway/v0/check_ready'];
    const problems = ['/gateway/v0/problems/', '/gateway/v0/problems/not-found'];
    const hotels = ['/v1/hotels', '/v1/hotels/bdd640fb-0667-4ad1-9c80-317fa3b1799d', '/v1/cars/'];
    const readOnly = ['/v1/', '/v1/messages/', '/v2/messages/1', '/v1/accounts/', '/v2/accounts/demo'];

    function check(path: string, write?: 'post' | 'patch'): void {
      const allow = ['GET', 'HEAD', 'OPTIONS', ...(write === undefined ? [] : [write.toUpperCase()])].join(', ');

      it(`are limited to ${allow} at ${path}, where HEAD responds like GET without the body`, async () => {
        for (const method of (['post', 'put', 'patch', 'delete'] as const).filter((other) => other !== write)) {
          const { body } = await callAsDemo(desk, path, method).expect(405).expect('Allow', allow);
          const detail = `This resource supports ${allow}.`;
          assert.deepEqual(body, { code: 405, message: '405: Method Not Allowed', info_url: body.info_url, detail });
        }
        const { text } = await callAsDemo(desk, path, 'options').expect(204).expect('Allow', allow);
        const get = await callAsDemo(desk, path).expect(200);
        const head = await callAsDemo(desk, path, 'head').expect(200);
        assert.deepEqual([text, head.text ?? ''], ['', '']);
        for (const name of ['content-type', 'vary', 'link', 'cache-control'])
          assert.equal(head.headers[name], get.headers[name], name);
      });
    }

    for (const path of [...readOnly, ...hotels, '/v1/accounts/demo/messages/', '/gateway/v0/diag/']) check(path);
    for (const path of [...probes, ...problems]) check(path);
    for (const path of bookings) check(`${path}/`, 'post');
    for (const path of bookingItems) check(path, 'patch');

    it('that are rejected may have a body', async () => {
      await callAsDemo(desk, '/v1/messages/', 'post').send({ content: 'hello' }).expect(405);
      await callAsDemo(desk, '/v1/hotels/', 'post').send({ hotel_id: 'x' }).expect(405);
    });

    it('respond 404 instead of 405 if there is no resource', async () => {
      for (const path of ['/v3/messages/', '/v1/nowhere', '/v1/hotels/no/where'])
        for (const method of ['post', 'options'] satisfies Method[]) await callAsDemo(desk, path, method).expect(404);
    });
  });
}
