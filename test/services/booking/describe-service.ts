/** What the hotel and the car service promise alike, by their data. */
import assert from 'node:assert/strict';
import type Koa from 'koa';
import request from 'supertest';
import { createRepresentations } from '#http';
import type { BookingServiceOptions } from '#services/booking';
import type { DemoRows } from '#storage';
import { openDemoDatabase } from '../../support/databases.ts';
import { testServers } from '../../support/serve.ts';

type Row = Readonly<Record<string, unknown>>;
type Booking = Row & { readonly id: string };

export interface ServiceCase {
  readonly create: (options: BookingServiceOptions) => Koa;
  /** As a client sees them. */
  readonly thing: Row;
  readonly booking: Booking;
  /** The fields of a booking that can be filtered by. */
  readonly filters: readonly string[];
  readonly rows: DemoRows;
  /** Filters that are refused. */
  readonly refused: readonly string[];
  /** What heads their pages: of all, and of one. */
  readonly headings: readonly [things: string, one: string];
}

export function describeService(name: string, given: ServiceCase): void {
  const { create, thing, booking, filters, rows, refused } = given;
  const [things, one] = given.headings;
  describe(name, () => {
    const servers = testServers();

    async function open() {
      const database = await openDemoDatabase(servers, rows);
      return create({ database, representations: createRepresentations() }).callback();
    }

    it(`shows a thing with ${Object.keys(thing).join(', ')}`, async () => {
      const { body } = await request(await open())
        .get('/')
        .expect(200);
      assert.deepEqual(body.items, [thing]);
    });

    it(`shows a booking with ${Object.keys(booking).join(', ')}`, async () => {
      const { body } = await request(await open())
        .get(`/bookings/${booking.id}`)
        .set('X-Travel-User', 'ann')
        .expect(200);
      assert.deepEqual(withoutPlace(body), booking);
    });

    it('takes each field as a filter, and checks what it is asked for', async () => {
      const service = await open();
      const ask = (search: string) => request(service).get(`/bookings/?${search}`).set('X-Travel-User', 'ann');
      for (const field of filters) {
        const { body } = await ask(`${field}=${booking[field]}`).expect(200);
        assert.deepEqual(body.items.map(withoutPlace), [booking]);
      }
      for (const search of refused) await ask(search).expect(400);
    });

    it('has pages for people, each headed by what it shows', async () => {
      const service = await open();
      for (const [path, heading] of Object.entries({
        '/': things,
        [`/${thing['id']}`]: one,
        '/bookings/': `${one} bookings`,
        [`/bookings/${booking.id}`]: `${one} booking`,
      })) {
        const asked = request(service).get(path).set({ Accept: 'text/html', 'X-Travel-User': 'ann' });
        const { text } = await asked.expect(200);
        assert.ok(text.includes(`<h1>${heading}</h1>`) && text.includes(`<title>${heading}</title>`), path);
        assert.ok(text.includes(path.startsWith('/bookings') ? booking.id : String(thing['id'])), path);
      }
    });
  });
}

/** The port is another each time. */
function withoutPlace(shown: { readonly url: string }): Row {
  return { ...shown, url: new URL(shown.url).pathname };
}
