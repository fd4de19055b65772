/** The tests that the hotel and the car service share: their fields, filters and pages. */
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
  /** As clients see them. */
  readonly resource: Row;
  readonly booking: Booking;
  /** The fields of a booking that can be filtered by. */
  readonly filters: readonly string[];
  readonly rows: DemoRows;
  /** Filters that are refused. */
  readonly refused: readonly string[];
  /** The headings of their pages: of the list, and of one item. */
  readonly headings: readonly [list: string, one: string];
}

export function describeService(name: string, given: ServiceCase): void {
  const { create, resource, booking, filters, rows, refused } = given;
  const [list, one] = given.headings;
  describe(name, () => {
    const servers = testServers();

    async function open() {
      const database = await openDemoDatabase(servers, rows);
      return create({ database, representations: createRepresentations() }).callback();
    }

    it(`lists an item with ${Object.keys(resource).join(', ')}`, async () => {
      const { body } = await request(await open())
        .get('/')
        .expect(200);
      assert.deepEqual(body.items, [resource]);
    });

    it(`shows a booking with ${Object.keys(booking).join(', ')}`, async () => {
      const { body } = await request(await open())
        .get(`/bookings/${booking.id}`)
        .set('X-Travel-User', 'ann')
        .expect(200);
      assert.deepEqual(withoutPort(body), booking);
    });

    it('filters by each field, and refuses bad values and other names', async () => {
      const service = await open();
      const ask = (search: string) => request(service).get(`/bookings/?${search}`).set('X-Travel-User', 'ann');
      for (const field of filters) {
        const { body } = await ask(`${field}=${booking[field]}`).expect(200);
        assert.deepEqual(body.items.map(withoutPort), [booking]);
      }
      for (const search of refused) await ask(search).expect(400);
    });

    it('filters by ids in any case, and by times without their milliseconds', async () => {
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

    it('has a list for people whose rows lead to the items', async () => {
      const service = await open();
      const asked = request(service).get('/').set('Accept', 'text/html');
      const [, href = ''] = /<th scope="row"><a href="([^"]+)">/.exec((await asked.expect(200)).text) ?? [];
      const item = request(service).get(href).set('Accept', 'text/html');
      assert.match((await item.expect(200)).text, /Back to the list/);
    });

    it('has a page for people under each path, with a heading', async () => {
      const service = await open();
      for (const [path, heading] of Object.entries({
        '/': list,
        [`/${resource['id']}`]: one,
        '/bookings/': `${one} bookings`,
        [`/bookings/${booking.id}`]: `${one} booking`,
      })) {
        const asked = request(service).get(path).set({ Accept: 'text/html', 'X-Travel-User': 'ann' });
        const { text } = await asked.expect(200);
        assert.ok(text.includes(`<h1>${heading}</h1>`) && text.includes(`<title>${heading}</title>`), path);
        assert.ok(text.includes(path.startsWith('/bookings') ? booking.id : String(resource['id'])), path);
      }
    });
  });
}

/** The port differs each time. */
function withoutPort(shown: { readonly url: string }): Row {
  return { ...shown, url: new URL(shown.url).pathname };
}
