/** Sections 2, 3 and 4: hotels, cars and the caller's bookings, through the gateway. */
import assert from 'node:assert/strict';
import { bareProblem } from '../support/error-body.ts';
import {
  call,
  callAsDemo,
  carBooking,
  guestsCarBooking,
  guestsHotelBooking,
  hotelBooking,
  type OpenDesk,
  uuid,
} from './desk.ts';

const services = [
  { prefix: '/v1/hotels', booking: hotelBooking, thing: 'hotel_id', guests: guestsHotelBooking },
  { prefix: '/v1/cars', booking: carBooking, thing: 'car_id', guests: guestsCarBooking },
];

export function bookingCases(desk: OpenDesk): void {
  for (const { prefix, booking, thing, guests } of services) {
    describe(`bookings at ${prefix}`, () => {
      it('answers 200 and the confirmed booking, its three fields of old among others', async () => {
        const { body } = await callAsDemo(desk, `${prefix}/bookings/${booking}`)
          .expect(200)
          .expect('Content-Type', 'application/json');
        assert.deepEqual(Object.keys(body).slice(0, 3), ['id', thing, 'status']);
        assert.equal(body.id, booking);
        assert.match(body[thing], uuid);
        assert.equal(body.status, 'confirmed');
      });

      for (const path of [prefix, `${prefix}/`]) {
        it(`answers 200 and a page to GET ${path}, without a redirect`, async () => {
          const { body } = await callAsDemo(desk, path).expect(200);
          assert.ok(body.items.length > 0);
          for (const { id } of body.items) assert.match(id, uuid);
        });
      }

      it('lists the bookings of the caller and nobody else', async () => {
        const ids = async (user: string) => {
          const { body } = await call(desk, `${prefix}/bookings/`).auth(user, user).expect(200);
          return body.items.map(({ id }: { id: string }) => id);
        };
        const [demos, guest] = [await ids('demo'), await ids('guest')];
        assert.ok(demos.includes(booking) && !demos.includes(guests));
        assert.ok(guest.includes(guests) && !guest.includes(booking));
      });

      it("answers 404 to somebody else's booking and 200 to its owner", async () => {
        await callAsDemo(desk, `${prefix}/bookings/${guests}`).expect(bareProblem('not-found'));
        await call(desk, `${prefix}/bookings/${guests}`).auth('guest', 'guest').expect(200);
      });

      it('takes no word from the client on who it is', async () => {
        for (const name of ['X-Travel-User', 'x-travel-user', 'X-TRAVEL-USER', 'x_travel_user']) {
          await callAsDemo(desk, `${prefix}/bookings/${guests}`).set(name, 'guest').expect(404);
          await callAsDemo(desk, `${prefix}/bookings/${booking}`).set(name, 'guest').expect(200);
        }
        await call(desk, `${prefix}/bookings/${guests}`).set('X-Travel-User', 'guest').expect(401);
      });

      it('finds a booking by its UUID in capitals, which is the same UUID', async () => {
        const { body } = await callAsDemo(desk, `${prefix}/bookings/${booking.toUpperCase()}`).expect(200);
        assert.equal(body.id, booking);
      });

      for (const id of ['00000000-0000-4000-8000-000000000000', 'no-uuid', booking.slice(1), `${booking}0`, '%27']) {
        it(`answers 404 to a booking that is not there: ${id}`, async () => {
          await callAsDemo(desk, `${prefix}/bookings/${id}`).expect(bareProblem('not-found'));
        });
      }

      it('knows only the states pending, confirmed and cancelled', async () => {
        const { body } = await callAsDemo(desk, `${prefix}/bookings/`).expect(200);
        const states = new Set(body.items.map(({ status }: { status: string }) => status));
        assert.deepEqual([...states].sort(), ['cancelled', 'confirmed', 'pending']);
        await callAsDemo(desk, `${prefix}/bookings/?status=lost`).expect(400);
      });
    });
  }
}
