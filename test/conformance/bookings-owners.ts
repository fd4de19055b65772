/** Whose bookings are whose: others' are not there, in reads and in writes. */
import assert from 'node:assert/strict';
import { bareProblem } from '../support/error-body.ts';
import type { BookingClient } from './booking-client.ts';
import { call, callAsDemo } from './desk.ts';

export function ownerCases(client: BookingClient): void {
  const { desk, kind } = client;
  describe(`owners of bookings at ${kind.prefix}`, () => {
    it('alone can read and change them', async () => {
      const { request } = await client.scarcest();
      const booking = await client.book({ ...request, ...client.nextStay() });
      const path = client.pathOf(booking);
      const asGuest = (method: 'get' | 'patch') => call(desk, path, method).auth('guest', 'guest');
      await asGuest('get').expect(404);
      for (const ifMatch of ['*', '"1-json"']) {
        await asGuest('patch').set('If-Match', ifMatch).send({ status: 'cancelled' }).expect(bareProblem('not-found'));
      }
      const { body } = await callAsDemo(desk, path).expect(200);
      assert.deepEqual(body, booking);
    });

    it('cannot be told apart from nobody: a stranger’s PATCH is answered like one of nothing', async () => {
      for (const id of [kind.guests, '00000000-0000-4000-8000-000000000000', 'no-uuid']) {
        const patch = callAsDemo(desk, `${kind.prefix}/bookings/${id}`, 'patch').send({ status: 'cancelled' });
        await patch.set('If-Match', '*').expect(bareProblem('not-found'));
      }
      await call(desk, `${kind.prefix}/bookings/${kind.guests}`).auth('guest', 'guest').expect(200);
    });

    it('are who the password says, whatever else a request says', async () => {
      const { request } = await client.scarcest();
      const { body } = await client.post({ ...request, ...client.nextStay() }, 'guest').set('X-Travel-User', 'demo');
      await callAsDemo(desk, client.pathOf(body)).expect(404);
      await call(desk, client.pathOf(body)).auth('guest', 'guest').expect(200);
    });

    it('must say who they are', async () => {
      const { request } = await client.scarcest();
      await call(desk, `${kind.prefix}/bookings/`, 'post').send(request).expect(401);
      const booking = await client.book({ ...request, ...client.nextStay() });
      await call(desk, client.pathOf(booking), 'patch').set('If-Match', '*').send({ status: 'cancelled' }).expect(401);
      const { body } = await client.change(booking, { status: 'cancelled' }, '*').expect(200);
      assert.equal(body.status, 'cancelled');
    });
  });
}
