/** The booking services without the gateway, where the identity header alone determines the user. */
import assert from 'node:assert/strict';
import request from 'supertest';
import { desksOf } from '../support/desks.ts';
import { testServers } from '../support/serve.ts';
import { cars, hotels } from './booking-client.ts';

describe('a booking service called without the gateway', () => {
  const open = desksOf(testServers());

  for (const { prefix, guestBooking, idField } of [hotels, cars]) {
    it(`responds 401 to reads and writes without an identity header: ${prefix}`, async () => {
      const desk = await open({ only: [prefix === '/v1/hotels' ? 'hotel' : 'car'] });
      const url = (await desk.listen()).gateway.url;
      const as = (user?: string) => (user === undefined ? {} : { 'X-Travel-User': user });
      const get = (path: string, user?: string) => request(url).get(path).set(as(user));
      const [item] = (await get('/', 'guest').expect(200)).body.items;
      const post = (user?: string) =>
        request(url)
          .post('/bookings/')
          .set(as(user))
          .send({ [idField]: item.id });
      const patch = (user?: string) =>
        request(url)
          .patch(`/bookings/${guestBooking}`)
          .set(as(user))
          .set('If-Match', '*')
          .send({ status: 'cancelled' });
      for (const path of ['/bookings/', `/bookings/${guestBooking}`])
        assert.equal((await get(path).expect(401)).body.message, '401: Unauthorized');
      for (const refused of [post(), post(''), patch()]) await refused.expect(401);
      await patch('demo').expect(404);
      await get(`/bookings/${guestBooking}`, 'guest').expect(200);
      await post('guest').expect(201);
    });
  }
});
