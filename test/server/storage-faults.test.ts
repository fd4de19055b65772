/** The responses while the database file is full, read-only, deleted or replaced, and how the server recovers. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmodSync, copyFileSync, renameSync, statSync, symlinkSync, unlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { sql } from 'kysely';
import request from 'supertest';
import { silentLogger } from '#foundation';
import { createRepresentations } from '#http';
import type { Frontdesk } from '#server';
import { createHotelService } from '../../src/travel/hotel/hotel.ts';
import type { Database } from '../../src/travel/storage/database.ts';
import { openDatabase } from '../../src/travel/storage/open-database.ts';
import { storageProblem } from '../../src/travel/travel.ts';
import { highLimits } from '../contracts/booking-world.ts';
import { callAsDemo, desksOf } from '../support/desks.ts';
import { testServers } from '../support/serve.ts';
import { temporaryFiles } from '../support/temporary-files.ts';

const hotelId = '10000000-0000-4000-8000-000000000001';

describe('a full disk', () => {
  const servers = testServers();
  const writeFiles = temporaryFiles();
  const openDesk = desksOf(servers);

  /** Limits the database to its current number of pages, plus `more`. */
  async function allow(database: Database, more: number): Promise<void> {
    const { rows } = await sql<{ page_count: number }>`pragma page_count`.execute(database.kysely);
    await sql`pragma max_page_count = ${sql.lit((rows[0]?.page_count ?? 0) + more)}`.execute(database.kysely);
  }

  it('causes 503 with Retry-After and no partial bookings, until there is space again', async () => {
    const database = await openDatabase({ url: `sqlite:${join(await writeFiles(), 'full.db')}` });
    servers.later(database.close);
    const { kysely } = database;
    const room = { id: hotelId, hotel_id: hotelId, name: 'double', guests: 2, units: 1, price: 100, currency: 'EUR' };
    await kysely.insertInto('hotels').values({ id: hotelId, name: 'Ritz', city: 'Paris' }).execute();
    await kysely.insertInto('room_types').values(room).execute();
    const options = { database, representations: createRepresentations(), limits: highLimits, logger: silentLogger };
    const app = createHotelService({ ...options, toProblem: storageProblem }).callback();
    // Always later nights, and with a key, so that all tables grow.
    const book = (number: number) =>
      request(app)
        .post('/bookings/')
        .set({ 'X-Travel-User': 'ann', 'Idempotency-Key': String(number) })
        .send({
          hotel_id: hotelId,
          check_in: dateIn(1 + 80 * number),
          check_out: dateIn(81 + 80 * number),
        });

    await allow(database, 4);
    let made = 0;
    let answer = await book(made);
    while (answer.status === 201 && made < 200) {
      made += 1;
      answer = await book(made);
    }
    assert.deepEqual([answer.status, answer.headers['retry-after']], [503, '1'], answer.text);
    assert.match(answer.body.message, /^503: /);
    await request(app).get('/').expect(200);
    const stored = async () => {
      const counts = ['hotel_bookings', 'hotel_nights', 'answers'].map(async (table) => {
        const { rows } = await sql<{ count: number }>`select count(*) as count from ${sql.table(table)}`.execute(
          kysely,
        );
        return rows[0]?.count;
      });
      return Promise.all(counts);
    };
    assert.deepEqual(await stored(), [made, 80 * made, made]);
    await allow(database, 1000);
    await book(made).expect(201);
    assert.deepEqual(await stored(), [made + 1, 80 * (made + 1), made + 1]);
  });

  it('makes the server not ready after a failed booking, until there is space again', async function () {
    // A limit on the file size simulates a full disk.
    const limitFiles = (bytes: number | 'unlimited') =>
      execFileSync('prlimit', ['--pid', String(process.pid), `--fsize=${bytes}:`]);
    if (process.platform !== 'linux') return this.skip();
    const file = join(await writeFiles(), 'full.db');
    const desk = await openDesk({ databaseUrl: `sqlite:${file}` });
    const ready = () => callAsDemo(desk, '/gateway/v0/check_ready');
    // Leaves room for a single page, which is less than a booking needs.
    limitFiles(statSync(`${file}-wal`).size + 8192);
    try {
      await ready().expect(200);
      await bookAt(desk).expect(503).expect('Retry-After', '1');
      for (let times = 0; times < 2; times += 1)
        assert.match(
          (await ready().expect(503)).body.detail,
          /^The database file cannot be written: check its disk\.$/,
        );
    } finally {
      limitFiles('unlimited');
    }
    await ready().expect(200);
    await bookAt(desk).expect(201);
  });
});

function bookAt(desk: Frontdesk): request.Test {
  return request(desk.app.callback())
    .post('/v1/hotels/bookings/')
    .auth('demo', 'demo')
    .send({ hotel_id: 'bdd640fb-0667-4ad1-9c80-317fa3b1799d' });
}

function dateIn(days: number): string {
  return new Date(Date.now() + days * 86_400_000).toISOString().slice(0, 10);
}

describe('a database file', () => {
  const servers = testServers();
  const writeFiles = temporaryFiles();
  const openDesk = desksOf(servers);

  const faults = {
    'is read-only': [(file: string) => chmodSync(file, 0o444), (file: string) => chmodSync(file, 0o644), /read-only/],
    'was deleted': [
      (file: string) => renameSync(file, `${file}.away`),
      (file: string) => renameSync(`${file}.away`, file),
      /deleted/,
    ],
    'has lost its log': [
      (file: string) => renameSync(`${file}-wal`, `${file}.away`),
      (file: string) => renameSync(`${file}.away`, `${file}-wal`),
      /-wal, was deleted/,
    ],
    // A link to itself, because root can access a directory without permissions.
    'cannot be reached': [
      (file: string) => {
        renameSync(dirname(file), `${dirname(file)}.away`);
        symlinkSync(dirname(file), dirname(file));
      },
      (file: string) => {
        unlinkSync(dirname(file));
        renameSync(`${dirname(file)}.away`, dirname(file));
      },
      /cannot be reached/,
    ],
    'was replaced': [
      (file: string) => {
        renameSync(file, `${file}.away`);
        copyFileSync(`${file}.away`, file);
      },
      (file: string) => renameSync(`${file}.away`, file),
      /replaced: restart/,
    ],
  } as const;

  for (const [what, [breakIt, mendIt, reason]] of Object.entries(faults)) {
    it(`that ${what} makes the server not ready, with the reason, and prevents bookings until fixed`, async () => {
      const directory = await writeFiles();
      const file = join(directory, 'desk.db');
      const desk = await openDesk({ databaseUrl: `sqlite:${file}` });
      const ready = () => callAsDemo(desk, '/gateway/v0/check_ready');
      await ready().expect(200);
      breakIt(file);
      const { body, headers } = await ready().expect(503);
      assert.match(body.detail, reason);
      assert.ok(!body.detail.includes(directory));
      assert.equal(headers['retry-after'], '1');
      await bookAt(desk).expect(503).expect('Retry-After', '1');
      mendIt(file);
      await ready().expect(200);
      await bookAt(desk).expect(201);
    });
  }
});
