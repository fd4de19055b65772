/** Checks in the query plans that every query of the booking services uses an index. */
import assert from 'node:assert/strict';
import type Koa from 'koa';
import { CompiledQuery, type Kysely, type KyselyPlugin } from 'kysely';
import request from 'supertest';
import { createRepresentations } from '#http';
import { createCarService } from '../../src/travel/car/car.ts';
import { createHotelService } from '../../src/travel/hotel/hotel.ts';
import type { Database } from '../../src/travel/storage/database.ts';
import { openDatabase } from '../../src/travel/storage/open-database.ts';
import type { Tables } from '../../src/travel/storage/schema.ts';
import type { ScratchDatabase } from '../support/databases.ts';
import { highLimits, openWorld } from './booking-world.ts';

interface RecordedQuery {
  readonly sql: string;
  readonly parameters: readonly unknown[];
}

export function bookingPlansContract(create: () => Promise<ScratchDatabase>): void {
  let scratch: ScratchDatabase;
  let database: Database;
  let recorded: RecordedQuery[] = [];
  let apps: { readonly hotel: Koa; readonly car: Koa };
  let bodies: { readonly hotel: object; readonly car: object };

  before(async () => {
    scratch = await create();
    const world = await openWorld(scratch.url);
    bodies = {
      hotel: { hotel_id: await world.addHotel({ name: 'double', units: 1 }, { name: 'suite', units: 1 }) },
      car: { car_id: await world.addCar(1) },
    };
    await world.database.close();
    database = await openDatabase({ url: scratch.url });
    const recording = record(database, (query) => recorded.push(query));
    const options = { database: recording, representations: createRepresentations(), limits: highLimits };
    apps = { hotel: createHotelService(options), car: createCarService(options) };
  });
  beforeEach(() => {
    recorded = [];
  });
  after(async () => {
    await database.close();
    await scratch.remove();
  });

  const get = (kind: 'hotel' | 'car', path: string) =>
    request(apps[kind].callback()).get(path).set('X-Travel-User', 'ann').expect(200);

  for (const kind of ['hotel', 'car'] as const) {
    const stays = { hotel: 'check_in=2100-01-01&check_out=2100-01-03' };
    const stay = { ...stays, car: 'pickup_at=2100-01-01T00:00:00Z&dropoff_at=2100-01-03T00:00:00Z' }[kind];

    it(`when listing the bookings of a user in order: ${kind}`, async () => {
      const searches = ['', '?sort=created_at', '?sort=created_at&total=false', '?after=start'];
      for (const search of [...searches, `?sort=${stay.split('=')[0]}`, '?offset=100']) {
        await get(kind, `/bookings/${search}`);
      }
      const plans = await plansOf(database, recorded);
      for (const plan of plans.filter(({ sql }) => !sql.includes('count(*)')))
        assert.doesNotMatch(plan.text, /TEMP B-TREE|Sort/, `${plan.sql}\n${plan.text}`);
      assert.ok(plans.length >= 5);
    });

    it(`when booking, confirming, cancelling and being sold out: ${kind}`, async () => {
      const agent = request(apps[kind].callback());
      const post = (more: object = {}) =>
        agent
          .post('/bookings/')
          .set('X-Travel-User', 'ann')
          .send({ ...bodies[kind], ...more });
      const ends = Object.fromEntries(new URLSearchParams(stay));
      const { body } = await post({ ...ends, hold: true })
        .set('Idempotency-Key', kind)
        .expect(201);
      await post().expect(201);
      await post(ends);
      await post(ends).expect(409);
      for (const status of ['confirmed', 'cancelled']) {
        const patch = agent.patch(`/bookings/${body.id}`).set('X-Travel-User', 'ann').set('If-Match', '*');
        await patch.send({ status }).expect(200);
      }
      assert.ok((await plansOf(database, recorded)).length >= 10);
    });

    it(`when listing the inventory with availability: ${kind}`, async () => {
      await get(kind, '/');
      await get(kind, `/?city=Bern&${stay}`);
      assert.ok((await plansOf(database, recorded)).length >= 4);
    });
  }
}

/** Wraps a database so that all its queries are recorded. */
function record(database: Database, onQuery: (query: RecordedQuery) => void): Database {
  const recorder: KyselyPlugin = {
    transformQuery({ node, queryId }) {
      const { sql, parameters } = database.kysely.getExecutor().compileQuery(node, queryId);
      // The SQL of a page is compiled before its values are known, so any number can stand in for them.
      onQuery({ sql, parameters: parameters.map((value) => (Object(value) === value ? 1 : value)) });
      return node;
    },
    transformResult: async ({ result }) => result,
  };
  return {
    ...database,
    kysely: database.kysely.withPlugin(recorder),
    transact: (work) => database.transact((transaction) => work(transaction.withPlugin(recorder))),
  };
}

interface Plan {
  readonly sql: string;
  readonly text: string;
}

/**
 * Returns the plans of all queries that read, and fails if one scans a table. Turns sequential scans off in PostgreSQL,
 * which prefers them for tables as small as these.
 */
async function plansOf({ kysely, dialect }: Database, recorded: readonly RecordedQuery[]): Promise<readonly Plan[]> {
  const explained = recorded.filter(({ sql }) => /^\s*(?:select\b.*\bfrom|update|delete)/is.test(sql));
  const unique = [...new Map(explained.map((query) => [query.sql, query])).values()];
  return kysely.connection().execute(async (connection) => {
    if (dialect === 'postgres') await connection.executeQuery(CompiledQuery.raw('set enable_seqscan = off'));
    const plans: Plan[] = [];
    for (const { sql, parameters } of unique) {
      const explain = `explain ${dialect === 'sqlite' ? 'query plan ' : ''}${sql}`;
      const plan = { sql, text: await textOf(connection, explain, parameters) };
      assert.doesNotMatch(plan.text, /SCAN (?!.*USING)|Seq Scan/, `${sql}\n${plan.text}`);
      plans.push(plan);
    }
    if (dialect === 'postgres') await connection.executeQuery(CompiledQuery.raw('reset enable_seqscan'));
    return plans;
  });
}

async function textOf(connection: Kysely<Tables>, explain: string, parameters: readonly unknown[]): Promise<string> {
  const { rows } = await connection.executeQuery<Record<string, unknown>>(CompiledQuery.raw(explain, [...parameters]));
  return rows.map((row) => String(row['detail'] ?? row['QUERY PLAN'])).join('\n');
}
