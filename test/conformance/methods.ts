/** Which methods a resource takes: the others are 405 with what there is, OPTIONS and HEAD are for all. */
import assert from 'node:assert/strict';
import { callAsDemo, carBooking, hotelBooking, type Method, type OpenDesk } from './desk.ts';

const hotel = 'bdd640fb-0667-4ad1-9c80-317fa3b1799d';

const resources = [
  '/v1/',
  '/v1/messages/',
  '/v2/messages/1',
  '/v1/accounts/',
  '/v2/accounts/demo',
  '/v1/accounts/demo/messages/',
  '/v1/hotels',
  '/v1/hotels/bookings/',
  `/v1/hotels/bookings/${hotelBooking}`,
  `/v1/hotels/${hotel}`,
  '/v1/cars/',
  '/v1/cars/bookings/',
  `/v1/cars/bookings/${carBooking}`,
  '/gateway/v0/diag/',
  '/gateway/v0/check_alive',
  '/gateway/v0/check_ready',
  '/gateway/v0/problems/',
  '/gateway/v0/problems/not-found',
];

const others: readonly Method[] = ['post', 'put', 'patch', 'delete'];

/** What some take beside GET, HEAD and OPTIONS. */
const writes: Readonly<Record<string, 'patch' | 'post'>> = {
  '/v1/hotels/bookings/': 'post',
  '/v1/cars/bookings/': 'post',
  [`/v1/hotels/bookings/${hotelBooking}`]: 'patch',
  [`/v1/cars/bookings/${carBooking}`]: 'patch',
};

export function methodCases(desk: OpenDesk): void {
  describe('methods', () => {
    for (const path of resources) {
      const write = writes[path];
      const methods = ['GET', 'HEAD', 'OPTIONS', ...(write === undefined ? [] : [write.toUpperCase()])];
      const allow = methods.join(', ');

      it(`of ${path}: ${allow}`, async () => {
        for (const method of others.filter((other) => other !== write)) {
          const { body } = await callAsDemo(desk, path, method).expect(405).expect('Allow', allow);
          assert.equal(body.code, 405);
          assert.equal(body.message, '405: Method Not Allowed');
        }
        const { text } = await callAsDemo(desk, path, 'options').expect(204).expect('Allow', allow);
        assert.equal(text, '');
      });

      it(`of ${path}: HEAD answers like GET, without the body`, async () => {
        const get = await callAsDemo(desk, path).expect(200);
        const head = await callAsDemo(desk, path, 'head').expect(200);
        assert.equal(head.text ?? '', '');
        for (const name of ['content-type', 'vary', 'link', 'cache-control']) {
          assert.equal(head.headers[name], get.headers[name], name);
        }
      });
    }

    it('take a body where none is wanted, and answer all the same', async () => {
      await callAsDemo(desk, '/v1/messages/', 'post').send({ content: 'hello' }).expect(405);
      await callAsDemo(desk, '/v1/hotels/', 'post').send({ hotel_id: 'x' }).expect(405);
    });

    it('answer 404, not 405, where there is nothing', async () => {
      for (const path of ['/v3/messages/', '/v1/nowhere', '/v1/hotels/no/where']) {
        await callAsDemo(desk, path, 'post').expect(404);
        await callAsDemo(desk, path, 'options').expect(404);
      }
    });
  });
}
