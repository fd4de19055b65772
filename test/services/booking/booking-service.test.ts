/** What hotels and cars share, seen at the hotel service: whose bookings one sees, and how lists are asked. */
import assert from 'node:assert/strict';
import type Koa from 'koa';
import request, { type Response } from 'supertest';
import { createRepresentations, problem, silentLogger } from '#http';
import { createHotelService } from '#services/hotel';
import { type Database, StorageUnavailable } from '#storage';
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
  hotel_bookings: [
    { id: anns, hotel_id: ritz, user: 'ann', status: 'confirmed' },
    { id: bobs, hotel_id: astoria, user: 'bob', status: 'pending' },
  ],
};

describe('a booking service', () => {
  const servers = testServers();

  async function open(): Promise<{ readonly app: Koa; readonly database: Database }> {
    const database = await openDemoDatabase(servers, rows);
    const toProblem = (thrown: unknown) =>
      thrown instanceof StorageUnavailable ? problem('storage-unavailable') : undefined;
    const options = { database, representations: createRepresentations(), logger: silentLogger, toProblem };
    return { app: createHotelService(options), database };
  }

  const get = (app: Koa, path: string, user = 'ann') => request(app.callback()).get(path).set('X-Travel-User', user);

  describe('the inventory', () => {
    it('is for anyone, in the order of its names', async () => {
      const { app } = await open();
      const { body } = await request(app.callback()).get('/').expect(200);
      assert.deepEqual(body.items, [
        { id: astoria, name: 'Astoria', city: 'Paris', room_types: [] },
        { id: ritz, name: 'Ritz', city: 'Paris', room_types: [] },
      ]);
    });

    it('is paged, filtered, searched and sorted by the database', async () => {
      const { app } = await open();
      const ids = async (search: string) =>
        (await get(app, `/?${search}`).expect(200)).body.items.map(({ id }: { id: string }) => id);
      assert.deepEqual(await ids('limit=1&offset=1'), [ritz]);
      assert.deepEqual(await ids('name=Ritz'), [ritz]);
      assert.deepEqual(await ids('q=ASTO'), [astoria]);
      assert.deepEqual(await ids('sort=-name'), [ritz, astoria]);
      assert.deepEqual(await ids('city=paris'), []);
    });
  });

  describe('bookings', () => {
    it('are listed to their owner, without the owner’s name', async () => {
      const { app } = await open();
      const { body } = await get(app, '/bookings/').expect(200);
      const [{ id, hotel_id, status, ...others }] = body.items;
      assert.deepEqual({ id, hotel_id, status }, { id: anns, hotel_id: ritz, status: 'confirmed' });
      assert.doesNotMatch(JSON.stringify(others), /ann"/);
      assert.equal(body.total, 1);
    });

    it('are walked through by their links, each once and none of anybody else', async () => {
      const { app, database } = await open();
      const more = [1, 2, 3, 4].map((n) => ({ id: anns.replace(/.$/, String(n)), hotel_id: ritz, user: 'ann' }));
      const model = await database.kysely.selectFrom('hotel_bookings').selectAll().executeTakeFirstOrThrow();
      const made = { ...model, status: 'cancelled' as const, refund: 0 };
      await database.kysely
        .insertInto('hotel_bookings')
        .values(more.map((row, index) => ({ ...made, ...row, reference: `0000000${index}` })))
        .execute();
      const ids: string[] = [];
      let link: string | undefined = '/bookings/?limit=2&sort=-status';
      while (link !== undefined) {
        const answer: Response = await get(app, link).expect(200);
        assert.equal(answer.body.total, 5);
        ids.push(...answer.body.items.map(({ id }: { id: string }) => id));
        link = answer.body.links.next;
      }
      assert.deepEqual(ids, [anns, ...more.map(({ id }) => id)]);
    });

    it('are told apart by status, and an argument that is wrong is named with all others', async () => {
      const { app } = await open();
      assert.equal((await get(app, '/bookings/?status=confirmed').expect(200)).body.total, 1);
      assert.equal((await get(app, '/bookings/?status=pending').expect(200)).body.total, 0);
      const { body } = await get(app, '/bookings/?status=lost&id=1&limit=x&user=bob').expect(400);
      assert.deepEqual(
        body.errors.map(({ pointer }: { pointer: string }) => pointer),
        ['#/query/status', '#/query/id', '#/query/limit', '#/query/user'],
      );
    });

    it('cannot be reached by a filter, a search or an order that names somebody else', async () => {
      const { app } = await open();
      const total = async (search: string) => (await get(app, `/bookings/?${search}`).expect(200)).body.total;
      assert.equal(await total(`id=${bobs}`), 0);
      assert.equal(await total(`q=${bobs}`), 0);
      await get(app, '/bookings/?user=bob').expect(400);
      await get(app, '/bookings/?sort=user').expect(400);
      await get(app, '/bookings/?fields=user').expect(400);
    });

    it('are shown one by one to their owner alone', async () => {
      const { app } = await open();
      assert.equal((await get(app, `/bookings/${anns}`).expect(200)).body.id, anns);
      await get(app, `/bookings/${bobs}`).expect(404, { code: 404, message: '404: Not Found' });
      await get(app, `/bookings/${bobs}`, 'bob').expect(200);
      await get(app, `/bookings/${bobs}`, 'BOB').expect(404);
    });

    it('need somebody who asks', async () => {
      const { app } = await open();
      await request(app.callback())
        .get('/bookings/')
        .expect(401)
        .expect('WWW-Authenticate', /^Basic /);
      await request(app.callback()).get(`/bookings/${anns}`).expect(401);
    });

    it('have a tag of their version', async () => {
      const { app, database } = await open();
      const tag = async () => (await get(app, `/bookings/${anns}`)).headers['etag'];
      assert.equal(await tag(), '"1-json"');
      await database.kysely.updateTable('hotel_bookings').set({ version: 2 }).where('id', '=', anns).execute();
      assert.equal(await tag(), '"2-json"');
      await get(app, `/bookings/${anns}`).set('If-None-Match', '"1-json"').expect(200);
      await get(app, `/bookings/${anns}`).set('If-None-Match', '"2-json"').expect(304);
    });

    it('are found by a UUID in capitals', async () => {
      const { app } = await open();
      await get(app, `/bookings/${anns.toUpperCase()}`).expect(200);
    });

    it('keep one tag and one spelling of their id, whatever the spelling in the path', async () => {
      const { app } = await open();
      const { body, headers } = await get(app, `/bookings/${anns.toUpperCase()}`).expect(200);
      assert.equal(body.id, anns);
      assert.equal(headers['etag'], '"1-json"');
    });

    it('are no secret that a tag could tell: somebody else’s is 404 whatever is known of it', async () => {
      const { app } = await open();
      await get(app, `/bookings/${bobs}`).set('If-None-Match', '"1-json"').expect(404);
      await get(app, `/bookings/${bobs}`).set('If-None-Match', '*').expect(404);
    });

    for (const id of ['x', anns.slice(1), `${anns}x`, `{${anns}}`, anns.replaceAll('-', ''), "'%20or%201=1", '%00']) {
      it(`are not there under what is no UUID: ${id}`, async () => {
        const { app } = await open();
        await get(app, `/bookings/${id}`).expect(404);
      });
    }
  });

  it('answers 503 while the database is away', async () => {
    const { app, database } = await open();
    await database.close();
    for (const path of ['/', `/${ritz}`, '/bookings/', `/bookings/${anns}`]) await get(app, path).expect(503);
    const agent = request(app.callback());
    await agent.post('/bookings/').set('X-Travel-User', 'ann').send({ hotel_id: ritz }).expect(503);
    const patch = agent.patch(`/bookings/${anns}`).set('X-Travel-User', 'ann').set('If-Match', '*');
    await patch.send({ status: 'cancelled' }).expect(503);
  });
});
