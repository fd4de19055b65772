/** The booking services by themselves, as somebody meets them who finds their port: nobody is known there. */
import request from 'supertest';
import { desksOf } from '../support/desks.ts';
import { testServers } from '../support/serve.ts';
import { bookingKinds } from './booking-kinds.ts';

describe('a booking service that is called past the gateway', () => {
  const open = desksOf(testServers());

  for (const { prefix, guests, thing } of bookingKinds) {
    it(`answers 401 to whoever names no user, in reads and in writes: ${prefix}`, async () => {
      const desk = await open({ only: [prefix === '/v1/hotels' ? 'hotel' : 'car'] });
      const url = (await desk.listen()).gateway?.url ?? '';
      for (const path of ['/bookings/', `/bookings/${guests}`]) {
        const { body } = await request(url).get(path).expect(401);
        if (body.message !== '401: Unauthorized') throw new Error(JSON.stringify(body));
      }
      const [item] = (await request(url).get('/').set('X-Travel-User', 'guest').expect(200)).body.items;
      const order = { [thing]: item.id };
      await request(url).post('/bookings/').send(order).expect(401);
      await request(url).post('/bookings/').set('X-Travel-User', '').send(order).expect(401);
      const patch = () => request(url).patch(`/bookings/${guests}`).set('If-Match', '*').send({ status: 'cancelled' });
      await patch().expect(401);
      await patch().set('X-Travel-User', 'demo').expect(404);
      await request(url).get(`/bookings/${guests}`).set('X-Travel-User', 'guest').expect(200);
      await request(url).post('/bookings/').set('X-Travel-User', 'guest').send(order).expect(201);
    });
  }
});
