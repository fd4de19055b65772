/** What every storage promises, whatever holds the rows: one suite, run on each. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { sql } from 'kysely';
import type { ListQuery } from '#query';
import {
  type CarRow,
  type Database,
  type DemoRows,
  loadDemo,
  openDatabase,
  StorageUnavailable,
  selectPage,
} from '#storage';

/** A place for one test's rows. */
export interface Place {
  readonly url: string;
  /** Takes the place away, with all that is in it. */
  readonly remove: () => Promise<void>;
}

const hotelId = '6f1f3c52-7d7e-4a57-9d43-5f0f6c1d2a01';
const bookingId = '0b6f1c52-7d7e-4a57-9d43-5f0f6c1d2a01';
const nowMs = Date.UTC(2026, 0, 2, 3, 4, 5);

const demo: DemoRows = {
  messages: [{ id: 5, account_id: 'demo', subject: 'Hello', body: 'World' }],
  accounts: [{ id: 'demo', name: 'Demo' }],
  hotel_bookings: [{ id: bookingId, hotel_id: hotelId, user: 'demo', status: 'confirmed' }],
  hotels: [{ id: hotelId, name: 'Astoria', city: 'Bern' }],
};

export interface StorageKind {
  readonly name: string;
  /** Whether a second `openDatabase` of a URL finds the same rows; the cases of several openers are for such places alone. */
  readonly shared: boolean;
}

export function describeStorage({ name, shared }: StorageKind, createPlace: () => Promise<Place>): void {
  const itShared = (title: string, test: () => Promise<void>) => {
    if (shared) it(title, test);
  };

  describe(`storage: ${name}`, () => {
    let place: Place;
    let database: Database;

    beforeEach(async () => {
      place = await createPlace();
      database = await openDatabase({ url: place.url });
    });

    afterEach(async () => {
      await database.close();
      await place.remove();
    });

    describe('openDatabase', () => {
      itShared('makes the tables once, however often it is opened, and keeps their rows', async () => {
        await loadDemo(database, demo, { nowMs });
        await database.close();
        database = await openDatabase({ url: place.url });
        assert.equal(await countRows(database, 'hotels'), 1);
      });

      itShared('lets two open an empty place at the same time', async () => {
        const fresh = await createPlace();
        const opened = await Promise.all([openDatabase({ url: fresh.url }), openDatabase({ url: fresh.url })]);
        const loaded = await Promise.all(opened.map((each) => loadDemo(each, demo, { nowMs })));
        assert.deepEqual(loaded.toSorted(), [false, true]);
        await Promise.all(opened.map((each) => each.close()));
        await fresh.remove();
      });

      it('says that it is ready until it is closed, twice or once', async () => {
        assert.equal(await database.isReady(), true);
        await database.close();
        await database.close();
        assert.equal(await database.isReady(), false);
      });
    });

    describe('loadDemo', () => {
      it('puts the rows in, whatever the order of the tables, and fills in what they leave out', async () => {
        assert.equal(await loadDemo(database, demo, { nowMs }), true);
        const booking = await database.kysely.selectFrom('hotel_bookings').selectAll().executeTakeFirstOrThrow();
        assert.deepEqual(
          { ...booking },
          {
            id: bookingId,
            hotel_id: hotelId,
            user: 'demo',
            status: 'confirmed',
            version: 1,
            created_at: '2026-01-02T03:04:05.000Z',
            reference: 'AC07E900',
            room_type: 'standard',
            guests: 1,
            starts_at: '2026-01-02',
            ends_at: '2026-01-03',
            price: 0,
            currency: 'EUR',
            policy: '[]',
            expires_at: null,
            refund: null,
          },
        );
      });

      it('leaves a database alone that has a row in any table', async () => {
        await database.kysely.insertInto('accounts').values({ id: 'a', name: 'A' }).execute();
        assert.equal(await loadDemo(database, demo, { nowMs }), false);
        assert.equal(await countRows(database, 'hotels'), 0);
      });

      it('loads once only', async () => {
        assert.equal(await loadDemo(database, demo, { nowMs }), true);
        assert.equal(await loadDemo(database, demo, { nowMs }), false);
        assert.equal(await countRows(database, 'messages'), 1);
      });

      it('leaves new messages a number of their own', async () => {
        await loadDemo(database, demo, { nowMs });
        const values = { account_id: 'demo', subject: 's', body: 'b', created_at: 'now' };
        const inserted = database.kysely.insertInto('messages').values(values).returning('id');
        assert.equal((await inserted.executeTakeFirst())?.id, 6);
        await database.kysely.deleteFrom('messages').where('id', '=', 6).execute();
        assert.equal((await inserted.executeTakeFirst())?.id, 7);
      });
    });

    describe('first', () => {
      it('finds the row of its parameters, and nothing where there is none', async () => {
        await loadDemo(database, demo, { nowMs });
        const find = database.prepareFirst(
          database.kysely
            .selectFrom('hotel_bookings')
            .select(['id', 'status'])
            .where('id', '=', '')
            .where('user', '=', ''),
        );
        assert.deepEqual({ ...(await find(bookingId, 'demo')) }, { id: bookingId, status: 'confirmed' });
        assert.equal(await find(bookingId, 'guest'), undefined);
        assert.equal(await find("' or ''='", 'demo'), undefined);
        assert.deepEqual({ ...(await find(bookingId, 'demo')) }, { id: bookingId, status: 'confirmed' });
      });

      it('keeps several reads apart', async () => {
        await loadDemo(database, demo, { nowMs });
        const hotel = database.prepareFirst(database.kysely.selectFrom('hotels').select('name').where('id', '=', ''));
        const message = database.prepareFirst(
          database.kysely.selectFrom('messages').select('subject').where('id', '=', 0),
        );
        assert.deepEqual({ ...(await hotel(hotelId)) }, { name: 'Astoria' });
        assert.deepEqual({ ...(await message(5)) }, { subject: 'Hello' });
      });

      itShared('does not see what another request has not committed yet', async () => {
        const find = database.prepareFirst(database.kysely.selectFrom('accounts').select('name').where('id', '=', ''));
        await database.kysely.transaction().execute(async (transaction) => {
          await transaction.insertInto('accounts').values({ id: 'a', name: 'A' }).execute();
          assert.equal(await find('a'), undefined);
        });
        assert.deepEqual({ ...(await find('a')) }, { name: 'A' });
      });
    });

    describe('selectPage', () => {
      it('gives the rows and the total that a plain filter and sort of the same rows give', async () => {
        await fc.assert(
          fc.asyncProperty(fc.array(car, { maxLength: 30 }), list, async (drawn, query) => {
            const cars = drawn.map((row, index) => ({ ...row, id: String(index).padStart(3, '0') }));
            await sql`delete from cars`.execute(database.kysely);
            if (cars.length > 0) await database.kysely.insertInto('cars').values(cars).execute();
            const page = await selectPage(
              database,
              database.kysely.selectFrom('cars').select(['id', 'model', 'class', 'city']),
              query,
            );
            const expected = modelPage(cars, query);
            assert.deepEqual(
              page.items.map((row) => ({ ...row })),
              expected.items,
            );
            assert.equal(page.total, expected.total);
          }),
          { numRuns: 60 },
        );
      });

      it('gives an empty page and the true total past the end, however far', async () => {
        await loadDemo(database, demo, { nowMs });
        for (const offset of [1, 2 ** 31, Number.MAX_SAFE_INTEGER]) {
          const page = await selectPage(
            database,
            database.kysely.selectFrom('cars').select(['id', 'model', 'class', 'city']),
            {
              ...everything,
              offset,
            },
          );
          assert.deepEqual(page, { items: [], total: 0 });
          const hotels = database.kysely.selectFrom('hotels').select(['id']);
          assert.deepEqual(await selectPage(database, hotels, { ...everything, offset }), { items: [], total: 1 });
        }
      });

      it('stays within the rows that the query gives at all', async () => {
        await insertAccounts(database);
        const mine = database.kysely.selectFrom('accounts').selectAll().where('id', '!=', 'b');
        const { items, total } = await selectPage(database, mine, { ...everything, limit: 1 });
        assert.deepEqual([items.map(({ id }) => id), total], [['a'], 2]);
      });

      it('filters, searches and sorts by computed columns of a subquery', async () => {
        await insertAccounts(database);
        const computed = database.kysely
          .selectFrom((from) =>
            from
              .selectFrom('accounts')
              .select(['id', sql<string>`id || '!' || name`.as('title')])
              .as('a'),
          )
          .selectAll();
        const { items } = await selectPage(database, computed, {
          ...everything,
          filters: [{ column: 'title', value: 'b!B' }],
          search: { text: 'B!', columns: ['title'] },
          sort: [{ column: 'title', descending: true }],
        });
        assert.deepEqual(
          items.map((row) => ({ ...row })),
          [{ id: 'b', title: 'b!B' }],
        );
      });

      it('finds letters beyond ASCII in either case', async () => {
        await database.kysely.insertInto('accounts').values({ id: 'a', name: 'ZÜRICH Straße' }).execute();
        const accounts = database.kysely.selectFrom('accounts').selectAll();
        for (const text of ['zürich', 'ZÜRICH', 'STRAßE']) {
          const { total } = await selectPage(database, accounts, {
            ...everything,
            search: { text, columns: ['name'] },
          });
          assert.equal(total, 1, text);
        }
      });

      it('takes what a client sent as values, never as SQL', async () => {
        await insertAccounts(database);
        const accounts = database.kysely.selectFrom('accounts').selectAll();
        const evil = `'; drop table accounts; --`;
        const query = {
          ...everything,
          filters: [{ column: 'name' as const, value: evil }],
          search: { text: evil, columns: ['name' as const] },
        };
        assert.equal((await selectPage(database, accounts, query)).total, 0);
        assert.equal(await countRows(database, 'accounts'), 3);
      });
    });

    describe('constraints', () => {
      const refuse = async (insertion: { execute(): Promise<unknown> }) =>
        assert.rejects(insertion.execute(), (error) => !(error instanceof StorageUnavailable));
      const booking = {
        id: bookingId,
        hotel_id: hotelId,
        user: 'demo',
        status: 'confirmed' as const,
        created_at: 'now',
        reference: '01234567',
        room_type: 'double',
        guests: 1,
        starts_at: '2030-01-01',
        ends_at: '2030-01-02',
        price: 100,
        currency: 'EUR',
        policy: '[]',
      };

      beforeEach(async () => {
        await database.kysely.insertInto('hotels').values({ id: hotelId, name: 'A', city: 'B' }).execute();
      });

      it('refuse a booking of a hotel that does not exist', async () => {
        await refuse(database.kysely.insertInto('hotel_bookings').values({ ...booking, hotel_id: bookingId }));
      });

      it('refuse a status that is none', async () => {
        const status = 'lost' as 'pending';
        await refuse(database.kysely.insertInto('hotel_bookings').values({ ...booking, status }));
      });

      it('refuse the same id twice, and a version below 1', async () => {
        const insertion = database.kysely.insertInto('hotel_bookings').values(booking);
        await insertion.execute();
        await refuse(insertion);
        await refuse(database.kysely.updateTable('hotel_bookings').set({ version: 0 }));
      });

      it('refuse the same reference twice', async () => {
        await database.kysely.insertInto('hotel_bookings').values(booking).execute();
        await refuse(database.kysely.insertInto('hotel_bookings').values({ ...booking, id: hotelId }));
      });

      for (const broken of [
        { ends_at: '2030-01-01' },
        { status: 'cancelled' as const },
        { refund: 1 },
        { status: 'cancelled' as const, refund: 101 },
        { expires_at: '2030-01-01T00:00:00.000Z' },
        { price: -1 },
        { currency: 'eur' },
        { guests: 0 },
      ]) {
        it(`refuse a booking with ${JSON.stringify(broken)}`, async () => {
          await refuse(database.kysely.insertInto('hotel_bookings').values({ ...booking, ...broken }));
        });
      }
    });

    describe('transactions', () => {
      it('leave nothing behind when they fail', async () => {
        const failing = database.kysely.transaction().execute(async (transaction) => {
          await transaction.insertInto('accounts').values({ id: 'a', name: 'A' }).execute();
          throw new Error('on purpose');
        });
        await assert.rejects(failing, /on purpose/);
        assert.equal(await countRows(database, 'accounts'), 0);
      });

      itShared('of two openers wait for each other without losing an update', async () => {
        await insertAccounts(database);
        const other = await openDatabase({ url: place.url });
        const append = (to: Database) =>
          to.kysely.transaction().execute(async (transaction) => {
            const accounts = transaction.selectFrom('accounts').select('name').where('id', '=', 'a');
            const { name } = await (to.dialect === 'postgres'
              ? accounts.forUpdate()
              : accounts
            ).executeTakeFirstOrThrow();
            await transaction
              .updateTable('accounts')
              .set({ name: `${name}x` })
              .where('id', '=', 'a')
              .execute();
          });
        await Promise.all([database, other, database, other, database, other].map(append));
        const { name } = await other.kysely
          .selectFrom('accounts')
          .select('name')
          .where('id', '=', 'a')
          .executeTakeFirstOrThrow();
        assert.equal(name, 'Axxxxxx');
        await other.close();
      });
    });

    it('says StorageUnavailable when it is asked after it was closed', async () => {
      const find = database.prepareFirst(database.kysely.selectFrom('accounts').select('name').where('id', '=', ''));
      await database.close();
      await assert.rejects(async () => find('a'), StorageUnavailable);
      await assert.rejects(database.kysely.selectFrom('accounts').selectAll().execute(), StorageUnavailable);
    });
  });
}

const everything = {
  offset: 0,
  limit: 20,
  fields: undefined,
  filters: [],
  search: undefined,
  sort: [{ column: 'id', descending: false }],
} as const satisfies ListQuery<{ id: string }>;

/** Few and short words of the letters that LIKE and SQL treat in their own way, so that filters and searches meet rows. */
const word = fc.string({ unit: fc.constantFrom('a', 'B', 'b', '%', '_', '\\', "'", 'é'), maxLength: 3 });
type Car = Pick<CarRow, 'id' | 'model' | 'class' | 'city'>;
const car = fc.record({ model: word, class: word, city: word });
const carColumn = fc.constantFrom('model', 'class', 'city');

const list: fc.Arbitrary<ListQuery<Car>> = fc.record({
  offset: fc.nat(12),
  limit: fc.integer({ min: 1, max: 12 }),
  fields: fc.constant(undefined),
  filters: fc.array(fc.record({ column: carColumn, value: word }), { maxLength: 1 }),
  search: fc.option(
    fc.record({ text: word.filter((text) => text !== ''), columns: fc.constant(['model', 'city'] as const) }),
    {
      nil: undefined,
    },
  ),
  sort: fc
    .uniqueArray(fc.record({ column: carColumn, descending: fc.boolean() }), {
      selector: ({ column }) => column,
      maxLength: 2,
    })
    .map((orders) => [...orders, { column: 'id' as const, descending: false }]),
});

/** The same page by the plainest means. */
function modelPage(cars: readonly Car[], { filters, search, sort, offset, limit }: ListQuery<Car>) {
  const needle = search?.text.toLowerCase() ?? '';
  const matching = cars
    .filter((row) => filters.every(({ column, value }) => row[column] === value))
    .filter(
      (row) => search === undefined || search.columns.some((column) => row[column].toLowerCase().includes(needle)),
    )
    .toSorted((a, b) => {
      for (const { column, descending } of sort) {
        const order = Buffer.compare(Buffer.from(a[column]), Buffer.from(b[column]));
        if (order !== 0) return descending ? -order : order;
      }
      return 0;
    });
  return { items: matching.slice(offset, offset + limit), total: matching.length };
}

async function countRows(database: Database, table: 'hotels' | 'accounts' | 'messages'): Promise<number> {
  return (await database.kysely.selectFrom(table).select('id').execute()).length;
}

async function insertAccounts(database: Database): Promise<void> {
  const names = ['A', 'B', 'C'];
  await database.kysely
    .insertInto('accounts')
    .values(names.map((name) => ({ id: name.toLowerCase(), name })))
    .execute();
}
