/** The booking services by themselves, as somebody meets them who finds their port: nobody is known there. */
import request from 'supertest';
import { type Server, startServer, startServers } from '../support/frontdesk-process.ts';
import { bookingKinds } from './booking-kinds.ts';

describe('a booking service that is called past the gateway', () => {
  let servers: readonly Server[] = [];

  before(async function () {
    this.timeout(30_000);
    servers = await startServers(['hotel', 'car'].map((name) => startServer(['--only', name])));
  });

  after(() => Promise.all(servers.map((server) => server.stop())));

  for (const [index, { prefix, guests, thing }] of bookingKinds.entries()) {
    it(`answers 401 to whoever names no user, in reads and in writes: ${prefix}`, async () => {
      const url = servers[index]?.gatewayUrl ?? '';
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
