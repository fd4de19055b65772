/** The hotel service: its fields, and the titles of its pages. */
import assert from 'node:assert/strict';
import request from 'supertest';
import { createRepresentations } from '#http';
import { createHotelService } from '#services/hotel';
import { openDemoDatabase } from '../../support/demo-database.ts';
import { testServers } from '../../support/serve.ts';

const hotel = { id: '10000000-0000-4000-8000-000000000001', name: 'Ritz', city: 'Paris' };
const booking = { id: '20000000-0000-4000-8000-000000000001', hotel_id: hotel.id, status: 'confirmed' };

describe('createHotelService', () => {
  const servers = testServers();

  async function open() {
    const database = await openDemoDatabase(servers, {
      hotels: [hotel],
      hotel_bookings: [{ ...booking, user: 'ann' }],
    });
    return createHotelService({ database, representations: createRepresentations() }).callback();
  }

  it('shows a hotel with id, name and city', async () => {
    const { body } = await request(await open())
      .get('/')
      .expect(200);
    assert.deepEqual(body.items, [hotel]);
  });

  it('shows a booking with id, hotel and status', async () => {
    await request(await open())
      .get(`/bookings/${booking.id}`)
      .set('X-Travel-User', 'ann')
      .expect(200, booking);
  });

  it('takes each field as a filter, and checks what it is asked for', async () => {
    const service = await open();
    const ask = (search: string) => request(service).get(`/bookings/?${search}`).set('X-Travel-User', 'ann');
    for (const [name, value] of Object.entries(booking)) {
      const { body } = await ask(`${name}=${value}`).expect(200);
      assert.deepEqual(body.items, [booking]);
    }
    await ask('hotel_id=ritz').expect(400);
    await ask('status=lost').expect(400);
    await ask('car_id=x').expect(400);
  });

  it('has pages for people', async () => {
    const { text } = await request(await open())
      .get('/')
      .set('Accept', 'text/html')
      .expect(200);
    assert.match(text, /<h1>Hotels<\/h1>.*Ritz/s);
  });
});
