/** The hotel and car services: their fields, filters and the headings of their pages. */
import assert from 'node:assert/strict';
import type Koa from 'koa';
import request from 'supertest';
import { createRepresentations } from '#http';
import type { BookingServiceOptions } from '../../src/travel/booking/service.ts';
import { createCarService } from '../../src/travel/car/car.ts';
import type { DemoRows } from '../../src/travel/demo.ts';
import { createHotelService } from '../../src/travel/hotel/hotel.ts';
import { highLimits } from '../contracts/booking-world.ts';
import { openDemoDatabase } from '../support/databases.ts';
import { testServers } from '../support/serve.ts';

type Row = Readonly<Record<string, unknown>>;
type Booking = Row & { readonly id: string };

interface ServiceCase {
  readonly create: (options: BookingServiceOptions) => Koa;
  /** The hotel or car as clients see it. */
  readonly resource: Row;
  /** The booking as clients see it. */
  readonly booking: Booking;
  /** The fields of a booking that are filters. */
  readonly filters: readonly string[];
  readonly rows: DemoRows;
  /** Query strings that are rejected. */
  readonly refused: readonly string[];
  /** The headings of the HTML pages for the list and for one item. */
  readonly headings: readonly [list: string, one: string];
}

const car = { id: '1000000a-0000-4000-8000-000000000001', model: 'Zoe', class: 'electric', city: 'Paris' };
const carBooking = { id: '20000000-0000-4000-8000-000000000001', car_id: car.id, status: 'cancelled' };
const hotel = { id: '1000000a-0000-4000-8000-000000000001', name: 'Ritz', city: 'Paris' };
const room = { hotel_id: hotel.id, name: 'double', guests: 2, price: 12_050, units: 3 };
const hotelBooking = { id: '20000000-0000-4000-8000-000000000001', hotel_id: hotel.id, status: 'confirmed' };

const services: readonly ServiceCase[] = [
  {
    create: createHotelService,
    resource: {
      ...hotel,
      room_types: [{ name: 'double', guests: 2, rooms: 3, price: { amount: '120.50', currency: 'EUR' } }],
      url: `/${hotel.id}`,
    },
    booking: {
      ...hotelBooking,
      reference: '95EB-2692',
      room_type: 'double',
      check_in: '2030-01-01',
      check_out: '2030-01-02',
      guests: 1,
      price: { amount: '120.50', currency: 'EUR' },
      created_at: '2030-01-01T00:00:00.000Z',
      cancellation_policy: [],
      url: `/bookings/${hotelBooking.id}`,
    },
    filters: ['id', 'hotel_id', 'status', 'reference', 'room_type', 'check_in', 'check_out', 'guests', 'created_at'],
    rows: {
      hotels: [hotel],
      room_types: [{ ...room, id: '30000000-0000-4000-8000-000000000001' }],
      hotel_bookings: [{ ...hotelBooking, room_type: 'double', user: 'ann' }],
    },
    refused: ['hotel_id=ritz', 'status=lost', 'car_id=x', 'check_in=today', 'price=1'],
    headings: ['Hotels', 'Hotel'],
  },
  {
    create: createCarService,
    resource: {
      ...car,
      pickup_place: 'Gare du Nord',
      count: 2,
      price: { amount: '49.00', currency: 'EUR' },
      url: `/${car.id}`,
    },
    booking: {
      ...carBooking,
      reference: '95EB-2692',
      pickup_at: '2030-01-01T09:00:00.000Z',
      dropoff_at: '2030-01-01T18:00:00.000Z',
      price: { amount: '80.00', currency: 'EUR' },
      created_at: '2030-01-01T00:00:00.000Z',
      cancellation_policy: [{ before: '2030-01-01T09:00:00.000Z', refund: { amount: '40.00', currency: 'EUR' } }],
      refund: { amount: '40.00', currency: 'EUR' },
      url: `/bookings/${carBooking.id}`,
    },
    filters: ['id', 'car_id', 'status', 'reference', 'pickup_at', 'dropoff_at', 'created_at'],
    rows: {
      cars: [{ ...car, pickup_place: 'Gare du Nord', units: 2, price: 4_900 }],
      car_bookings: [{ ...carBooking, price: 8_000, user: 'ann' }],
    },
    refused: ['car_id=zoe', 'status=lost', 'hotel_id=x', 'pickup_at=2030-01-01', 'refund=1'],
    headings: ['Cars', 'Car'],
  },
];

for (const { create, resource, booking, filters, rows, refused, headings } of services) {
  const [list, one] = headings;
  describe(create.name, () => {
    const servers = testServers();

    async function open() {
      const database = await openDemoDatabase(servers, rows);
      return create({ database, representations: createRepresentations(), limits: highLimits }).callback();
    }

    it(`lists an item with ${Object.keys(resource).join(', ')}`, async () => {
      const { body } = await request(await open())
        .get('/')
        .expect(200);
      assert.deepEqual(body.items.map(withoutPort), [resource]);
    });

    it(`shows a booking with ${Object.keys(booking).join(', ')}`, async () => {
      const { body } = await request(await open())
        .get(`/bookings/${booking.id}`)
        .set('X-Travel-User', 'ann')
        .expect(200);
      assert.deepEqual(withoutPort(body), booking);
    });

    it('filters by each field, by IDs in either case and times without milliseconds, and rejects what is invalid', async () => {
      const service = await open();
      const ask = (search: string) => request(service).get(`/bookings/?${search}`).set('X-Travel-User', 'ann');
      for (const field of filters) {
        const value = String(booking[field]);
        for (const text of [value, field.endsWith('id') ? value.toUpperCase() : value.replace('.000', '')]) {
          const { body } = await ask(`${field}=${text}`).expect(200);
          assert.deepEqual(body.items.map(withoutPort), [booking], `${field}=${text}`);
        }
      }
      for (const search of refused) await ask(search).expect(400);
    });

    it('serves an HTML page with a heading for each path', async () => {
      const service = await open();
      for (const [path, heading] of Object.entries({
        '/': list,
        [`/${resource['id']}`]: String(resource['name'] ?? resource['model']),
        '/bookings/': `${one} bookings`,
        [`/bookings/${booking.id}`]: `Booking ${booking['reference']}`,
      })) {
        const response = request(service).get(path).set({ Accept: 'text/html', 'X-Travel-User': 'ann' });
        const { text } = await response.expect(200);
        assert.ok(text.includes(`<h1>${heading}</h1>`) && text.includes(`<title>${heading}</title>`), path);
        assert.ok(text.includes(path.startsWith('/bookings') ? booking.id : String(resource['id'])), path);
      }
    });
  });
}

/** Removes the host and port from the URL, because the port differs each time. */
function withoutPort(shown: { readonly url: string }): Row {
  return { ...shown, url: new URL(shown.url).pathname };
}
