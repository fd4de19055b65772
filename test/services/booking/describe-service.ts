/** Tests that the hotel and car services share: their fields, filters and pages. */
import assert from 'node:assert/strict';
import type Koa from 'koa';
import request from 'supertest';
import { createRepresentations } from '#http';
import type { BookingServiceOptions } from '#services/booking';
import type { DemoRows } from '#storage';
import { highLimits } from '../../contracts/booking-world.ts';
import { openDemoDatabase } from '../../support/databases.ts';
import { testServers } from '../../support/serve.ts';

type Row = Readonly<Record<string, unknown>>;
type Booking = Row & { readonly id: string };

export interface ServiceCase {
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

export function describeService(name: string, given: ServiceCase): void {
  const { create, resource, booking, filters, rows, refused } = given;
  const [list, one] = given.headings;
  describe(name, () => {
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

    it('filters by each field, and rejects invalid values and unknown names', async () => {
      const service = await open();
      const ask = (search: string) => request(service).get(`/bookings/?${search}`).set('X-Travel-User', 'ann');
      for (const field of filters) {
        const { body } = await ask(`${field}=${booking[field]}`).expect(200);
        assert.deepEqual(body.items.map(withoutPort), [booking]);
      }
      for (const search of refused) await ask(search).expect(400);
    });

    it('filters by IDs in either case, and by times without milliseconds', async () => {
      const service = await open();
      const ask = (search: string) => request(service).get(`/bookings/?${search}`).set('X-Travel-User', 'ann');
      const written = filters.map((field) => [field, String(booking[field])] as const);
      const searches = [
        ...written.filter(([field]) => field.endsWith('id')).map(([field, id]) => `${field}=${id.toUpperCase()}`),
        ...written
          .filter(([field]) => field.endsWith('_at'))
          .map(([field, at]) => `${field}=${at.replace('.000', '')}`),
      ];
      for (const search of searches) {
        const { body } = await ask(search).expect(200);
        assert.deepEqual(body.items.map(withoutPort), [booking], search);
      }
    });

    it('links the rows of the HTML list to the items, also without their `url`', async () => {
      const service = await open();
      for (const path of ['/', '/?fields=id']) {
        const response = request(service).get(path).set('Accept', 'text/html');
        const [, href = ''] = /<th scope="row"><a href="([^"]+)">/.exec((await response.expect(200)).text) ?? [];
        const { pathname } = new URL(href, 'http://api.example');
        const item = request(service).get(pathname).set('Accept', 'text/html');
        assert.match((await item.expect(200)).text, /Back to the list/);
      }
    });

    it('serves an HTML page with a heading for each path', async () => {
      const service = await open();
      for (const [path, heading] of Object.entries({
        '/': list,
        [`/${resource['id']}`]: one,
        '/bookings/': `${one} bookings`,
        [`/bookings/${booking.id}`]: `${one} booking`,
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
