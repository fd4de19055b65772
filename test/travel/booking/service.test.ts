/** The common part of the booking services, tested with hotels: the inventory, its arguments, and a user's bookings. */
import assert from 'node:assert/strict';
import type Koa from 'koa';
import request, { type Response } from 'supertest';
import { silentLogger } from '#foundation';
import { createRepresentations, problem } from '#http';
import { createHotelService } from '../../../src/travel/hotel/hotel.ts';
import { type Database, StorageUnavailable } from '../../../src/travel/storage/database.ts';
import { highLimits } from '../../contracts/booking-world.ts';
import { openDemoDatabase } from '../../support/databases.ts';
import { testServers } from '../../support/serve.ts';

const ritz = '10000000-0000-4000-8000-000000000001';
const astoria = '10000000-0000-4000-8000-000000000002';
const anns = '20000000-0000-4000-8000-00000000000a';
const bobs = '20000000-0000-4000-8000-00000000000b';

const rows = {
  hotels: [
    { id: ritz, name: 'Ritz', city: 'Paris' },
    { id: astoria, name: 'Astoria', city: 'Paris' },
  ],
  room_types: [
    { id: '30000000-0000-4000-8000-000000000001', hotel_id: ritz, name: 'double', guests: 2, price: 100 },
    { id: '30000000-0000-4000-8000-000000000002', hotel_id: ritz, name: 'suite', guests: 4, price: 300 },
  ],
  hotel_bookings: [
    { id: anns, hotel_id: ritz, user: 'ann', status: 'confirmed' },
    { id: bobs, hotel_id: astoria, user: 'bob', status: 'pending' },
  ],
};

describe('a booking service', () => {
  const servers = testServers();
  let app: Koa;
  let database: Database;
  let clockReads = 0;

  beforeEach(async () => {
    database = await openDemoDatabase(servers, rows);
    const toProblem = (thrown: unknown) =>
      thrown instanceof StorageUnavailable ? problem('storage-unavailable') : undefined;
    const clock = () => {
      clockReads += 1;
      return Date.UTC(2030, 0, 1);
    };
    const representations = createRepresentations();
    app = createHotelService({ database, representations, limits: highLimits, logger: silentLogger, toProblem, clock });
  });

  const get = (path: string, user = 'ann') => request(app.callback()).get(path).set('X-Travel-User', user);
  const pointersOf = ({ body }: Response) =>
    body.errors.map(({ pointer, parameter }: Record<string, string>) => pointer ?? parameter);
  const idsOf = ({ body }: Response) => body.items.map(({ id }: { id: string }) => id);

  describe('the inventory', () => {
    it('can be filtered, also by guests and stay, and searched, sorted and paged', async () => {
      const check = async (search: string, ...ids: readonly string[]) =>
        assert.deepEqual(idsOf(await get(`/?${search}`).expect(200)), ids, search);
      await check('', astoria, ritz);
      await check('limit=1&offset=1', ritz);
      await check('name=Ritz', ritz);
      await check('q=ASTO', astoria);
      await check('sort=-name', ritz, astoria);
      await check('city=paris');
      await check('guests=4', ritz);
      await check('guests=5');
      await check('check_in=2030-01-01&check_out=2030-01-02', ritz);
    });

    it('reads the clock once per list, so that its filter and its figures agree', async () => {
      clockReads = 0;
      await get('/?check_in=2030-01-02&check_out=2030-01-03').expect(200);
      assert.equal(clockReads, 1);
    });

    it('reports each invalid argument once, for the list and for an item', async () => {
      const check = async (search: string, ...names: readonly string[]) => {
        for (const path of ['/', `/${ritz}`]) {
          assert.deepEqual(pointersOf(await get(`${path}?${search}`).expect(400)), names);
        }
      };
      await check('check_in=today&check_out=2030-01-03', 'check_in');
      await check('check_in=2030-01-03', 'check_out');
      await check('check_in=2030-01-03&check_out=2030-01-03', 'check_out');
      await check('check_in=2029-12-31&check_out=2030-01-03', 'check_in');
      await check('check_in=x&check_out=y&guests=21', 'check_in', 'check_out', 'guests');
      await check('guests=0', 'guests');
    });
  });

  describe('bookings', () => {
    it('cannot be reached by a filter, a search, an order, a tag or the owner’s name in upper case', async () => {
      for (const search of [`id=${bobs}`, `q=${bobs}`]) {
        assert.equal((await get(`/bookings/?${search}`).expect(200)).body.total, 0);
      }
      for (const search of ['user=bob', 'sort=user', 'fields=user']) await get(`/bookings/?${search}`).expect(400);
      for (const tag of ['"1-json"', '*']) await get(`/bookings/${bobs}`).set('If-None-Match', tag).expect(404);
      await get(`/bookings/${bobs}`, 'BOB').expect(404);
    });

    it('are rejected with the invalid field and how to correct it', async () => {
      const post = (body: object) => request(app.callback()).post('/bookings/').set('X-Travel-User', 'ann').send(body);
      const check = async (body: object, pointer: string, detail: string) =>
        assert.deepEqual((await post({ hotel_id: ritz, ...body }).expect(400)).body.errors, [{ pointer, detail }]);
      const fields = 'give both check_in and check_out, or neither';
      await check({ check_in: '2030-01-02' }, '/check_out', `is missing: ${fields}`);
      await check({ check_in: 'x', check_out: '2030-01-02' }, '/check_in', 'must be like 2031-05-12');
      const noDay = '2030-02-30 is not a date in the calendar';
      await check({ check_in: '2030-02-30', check_out: '2030-03-02' }, '/check_in', noDay);
      await check({ guests: 0 }, '/guests', 'must be at least 1');
      await check({ check_in: '2029-12-31', check_out: '2030-01-02' }, '/check_in', 'is in the past');
      await check({ hotel_id: anns }, '/hotel_id', 'is not the id of a hotel that can be booked');
      const known = 'is not a room type of this hotel; known: double, suite';
      await check({ room_type: 'barn' }, '/room_type', known);
      await check({ guests: 5 }, '/guests', 'must be at most 4 in one room');
    });
  });

  it('responds 503 while the database is unavailable', async () => {
    await database.close();
    for (const path of ['/', `/${ritz}`, '/bookings/', `/bookings/${anns}`]) await get(path).expect(503);
    const agent = request(app.callback());
    await agent.post('/bookings/').set('X-Travel-User', 'ann').send({ hotel_id: ritz }).expect(503);
    const patch = agent.patch(`/bookings/${anns}`).set('X-Travel-User', 'ann').set('If-Match', '*');
    await patch.send({ status: 'cancelled' }).expect(503);
  });
});
