/** The car service: its fields, and the titles of its pages. */
import assert from 'node:assert/strict';
import request from 'supertest';
import { createRepresentations } from '#http';
import { createCarService } from '#services/car';
import { openDemoDatabase } from '../../support/demo-database.ts';
import { testServers } from '../../support/serve.ts';

const car = { id: '10000000-0000-4000-8000-000000000001', model: 'Zoe', class: 'electric', city: 'Paris' };
const booking = { id: '20000000-0000-4000-8000-000000000001', car_id: car.id, status: 'confirmed' };

describe('createCarService', () => {
  const servers = testServers();

  async function open() {
    const database = await openDemoDatabase(servers, { cars: [car], car_bookings: [{ ...booking, user: 'ann' }] });
    return createCarService({ database, representations: createRepresentations() }).callback();
  }

  it('shows a car with id, model, class and city', async () => {
    const { body } = await request(await open())
      .get('/')
      .expect(200);
    assert.deepEqual(body.items, [car]);
  });

  it('shows a booking with id, car and status', async () => {
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
    await ask('car_id=zoe').expect(400);
    await ask('status=lost').expect(400);
    await ask('hotel_id=x').expect(400);
  });

  it('has pages for people', async () => {
    const { text } = await request(await open())
      .get('/')
      .set('Accept', 'text/html')
      .expect(200);
    assert.match(text, /<h1>Cars<\/h1>.*Zoe/s);
  });
});
