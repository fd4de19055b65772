/** The contract of storage on every kind of database. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { sql } from 'kysely';
import type { ListQuery } from '#query';
import { type DemoRows, loadDemo } from '../../src/travel/demo.ts';
import { type Database, StorageSetupError, StorageUnavailable } from '../../src/travel/storage/database.ts';
import { openDatabase } from '../../src/travel/storage/open-database.ts';
import type { CarRow } from '../../src/travel/storage/schema.ts';
import type { ScratchDatabase } from '../support/databases.ts';
import { selectPage } from '../support/select-page.ts';

const hotelId = '6f1f3c52-7d7e-4a57-9d43-5f0f6c1d2a01';
const bookingId = '0b6f1c52-7d7e-4a57-9d43-5f0f6c1d2a01';
const nowMs = Date.UTC(2026, 0, 2, 3, 4, 5);

const demo: DemoRows = {
  messages: [{ id: 5, account_id: 'demo', subject: 'Hello', body: 'World' }],
  accounts: [{ id: 'demo', name: 'Demo' }],
  hotel_bookings: [{ id: bookingId, hotel_id: hotelId, user: 'demo', status: 'confirmed' }],
  hotels: [{ id: hotelId, name: 'Astoria', city: 'Bern' }],
};

/** `isShared` means that every `openDatabase` of the URL sees the same rows. */
export function storageContract(create: () => Promise<ScratchDatabase>, { isShared = true } = {}): void {
  const itShared = (title: string, test: () => Promise<void>) => {
    if (isShared) it(title, test);
  };

  let scratch: ScratchDatabase;
  let database: Database;

  beforeEach(async () => {
    scratch = await create();
    database = await openDatabase({ url: scratch.url });
  });

  afterEach(async () => {
    await database.close();
    await scratch.remove();
  });

  describe('openDatabase', () => {
    itShared('creates the tables once and keeps their rows', async () => {
      await loadDemo(database, demo, { nowMs });
      await database.close();
      database = await openDatabase({ url: scratch.url });
      assert.equal(await countRows(database, 'hotels'), 1);
    });

    itShared('lets two processes open an empty database at the same time', async () => {
      const fresh = await create();
      const opened = await Promise.all([openDatabase({ url: fresh.url }), openDatabase({ url: fresh.url })]);
      const loaded = await Promise.all(opened.map((each) => loadDemo(each, demo, { nowMs })));
      assert.deepEqual(loaded.toSorted(), [false, true]);
      await Promise.all(opened.map((each) => each.close()));
      await fresh.remove();
    });

    itShared('rejects tables that a newer version of frontdesk has changed, and says so', async () => {
      await sql`insert into kysely_migration (name, timestamp) values ('9999-later', '2099-01-01')`.execute(
        database.kysely,
      );
      await assert.rejects(openDatabase({ url: scratch.url }), (error) => {
        assert.ok(error instanceof StorageSetupError);
        assert.match(
          error.message,
          /^cannot use .*: a newer version of frontdesk.* has recorded the migration 9999-later\. Start that version/,
        );
        assert.doesNotMatch(error.message, /DATABASE_URL/);
        return true;
      });
    });

    it('returns a database that is ready until it is closed, and that can be closed twice', async () => {
      assert.equal(await database.findFault(), undefined);
      await database.close();
      await database.close();
      assert.equal(typeof (await database.findFault()), 'string');
    });
  });

  describe('loadDemo', () => {
    it('inserts the rows once, in the order of their references, and fills in missing columns', async () => {
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
      assert.equal(await loadDemo(database, demo, { nowMs }), false);
      assert.equal(await countRows(database, 'messages'), 1);
    });

    it('changes nothing if any table has a row', async () => {
      await database.kysely.insertInto('accounts').values({ id: 'a', name: 'A' }).execute();
      assert.equal(await loadDemo(database, demo, { nowMs }), false);
      assert.equal(await countRows(database, 'hotels'), 0);
    });

    it('lets new messages get ids that were never used', async () => {
      await loadDemo(database, demo, { nowMs });
      const values = { account_id: 'demo', subject: 's', body: 'b', created_at: 'now' };
      const inserted = database.kysely.insertInto('messages').values(values).returning('id');
      assert.equal((await inserted.executeTakeFirst())?.id, 6);
      await database.kysely.deleteFrom('messages').where('id', '=', 6).execute();
      assert.equal((await inserted.executeTakeFirst())?.id, 7);
    });
  });

  describe('prepareFirst', () => {
    it('finds the row for its parameters, which are never interpreted as SQL, with several prepared reads', async () => {
      await loadDemo(database, demo, { nowMs });
      const { kysely } = database;
      const bookings = kysely.selectFrom('hotel_bookings').select(['id', 'status']).where('id', '=', '');
      const booking = database.prepareFirst(bookings.where('user', '=', ''));
      const message = database.prepareFirst(kysely.selectFrom('messages').select('subject').where('id', '=', 0));
      assert.deepEqual({ ...(await booking(bookingId, 'demo')) }, { id: bookingId, status: 'confirmed' });
      assert.deepEqual({ ...(await message(5)) }, { subject: 'Hello' });
      assert.equal(await booking(bookingId, 'guest'), undefined);
      assert.equal(await booking("' or ''='", 'demo'), undefined);
      assert.deepEqual({ ...(await booking(bookingId, 'demo')) }, { id: bookingId, status: 'confirmed' });
    });

    itShared('does not see uncommitted changes of another request', async () => {
      const find = database.prepareFirst(database.kysely.selectFrom('accounts').select('name').where('id', '=', ''));
      await database.kysely.transaction().execute(async (transaction) => {
        await transaction.insertInto('accounts').values({ id: 'a', name: 'A' }).execute();
        assert.equal(await find('a'), undefined);
      });
      assert.deepEqual({ ...(await find('a')) }, { name: 'A' });
    });
  });

  describe('createPageReader', () => {
    it('returns the same rows and total as filtering and sorting the rows in memory', async () => {
      await fc.assert(
        fc.asyncProperty(fc.array(car, { maxLength: 30 }), list, async (drawn, query) => {
          const cars = drawn.map((row, index) => ({ ...row, id: String(index).padStart(3, '0') }));
          await sql`delete from cars`.execute(database.kysely);
          if (cars.length > 0) await database.kysely.insertInto('cars').values(cars).execute();
          const columns = database.kysely.selectFrom('cars').select(['id', 'model', 'class', 'city']);
          const { items, total } = await selectPage(database, columns, query);
          assert.deepEqual({ items: items.map((row) => ({ ...row })), total }, modelPage(cars, query));
        }),
        { numRuns: 60 },
      );
    });

    it('stays within the rows of the query, and returns the correct total past their end', async () => {
      await insertAccounts(database);
      const accounts = database.kysely.selectFrom('accounts').selectAll();
      const check = async (id: string, offset: number, total: number) => {
        const page = await selectPage(database, accounts.where('id', '<', id), { ...everything, offset });
        assert.deepEqual(page, { items: [], total });
      };
      for (const offset of [2, 2 ** 31, Number.MAX_SAFE_INTEGER]) {
        await check('c', offset, 2);
        await check('a', offset, 0);
      }
      const { items } = await selectPage(database, accounts.where('id', '!=', 'a'), { ...everything, limit: 1 });
      assert.deepEqual({ ...items[0] }, { id: 'b', name: 'B' });
      assert.equal(items.length, 1);
    });

    it('finds the same letters regardless of case, in any language', async () => {
      const names = ['İstanbul', 'istanbul', 'ISTANBUL', 'ıstanbul', 'i\u0307stanbul', 'I\u0307STANBUL'];
      const others = ['Zürich', 'STRAẞE', 'ΣΊΣΥΦΟΣ', 'Čeština', 'ЖЕНЕВА', '\u212a2', 'Ａ', '𐐀', '50%_\\', 'Ärger'];
      const values = [...names, ...others].map((name, index) => ({ id: String(index).padStart(2, '0'), name }));
      await database.kysely.insertInto('accounts').values(values).execute();
      const accounts = database.kysely.selectFrom('accounts').selectAll();
      const check = async (text: string, ...found: readonly string[]) => {
        const { items } = await selectPage(database, accounts, { ...everything, search: { text, columns: ['name'] } });
        assert.deepEqual(
          items.map(({ name }) => name),
          found,
          text,
        );
      };
      for (const [texts, ...found] of [
        [[...names, 'STANBUL', 'ıST'], ...names],
        [['zürich', 'ZÜRICH', 'ü'], 'Zürich'],
        [['straße', 'STRAßE', 'aẞ'], 'STRAẞE'],
        [['ΣΊΣ', 'σίς', 'οσ', 'Ος'], 'ΣΊΣΥΦΟΣ'],
        [['čeŠ'], 'Čeština'],
        [['женева'], 'ЖЕНЕВА'],
        [['k2', 'K2', '\u212a2'], '\u212a2'],
        [['ａ'], 'Ａ'],
        [['𐐨'], '𐐀'],
        [['%', '_', '\\', '0%_\\'], '50%_\\'],
        [['zurich', 'STRASSE']],
      ] as const)
        for (const text of texts) await check(text, ...found);
    });

    it('finds what equals the search text after case folding, for any letters', async () => {
      const letter = fc.constantFrom(...'iIİısSſkK\u212aßẞσςΣéÉåÅ\u212bǆǅǄ');
      const word = fc.string({ unit: letter, minLength: 1, maxLength: 4 });
      const accounts = database.kysely.selectFrom('accounts').selectAll();
      const isFound = (name: string, text: string) => foldEach(name).includes(foldEach(text));
      const check = async (names: readonly string[], text: string) => {
        await database.kysely.deleteFrom('accounts').execute();
        const values = names.map((name, index) => ({ id: String(index).padStart(2, '0'), name }));
        await database.kysely.insertInto('accounts').values(values).execute();
        const { items } = await selectPage(database, accounts, { ...everything, search: { text, columns: ['name'] } });
        assert.deepEqual(
          items.map(({ name }) => name),
          names.filter((name) => isFound(name, text)),
        );
      };
      await fc.assert(fc.asyncProperty(fc.array(word, { minLength: 1, maxLength: 10 }), word, check), { numRuns: 60 });
    });
  });

  describe('constraints', () => {
    const rejects = async (insertion: { execute(): Promise<unknown> }) =>
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

    it('reject a duplicate booking or reference, and a version below 1', async () => {
      const insertion = database.kysely.insertInto('hotel_bookings').values(booking);
      await insertion.execute();
      await rejects(insertion);
      await rejects(database.kysely.insertInto('hotel_bookings').values({ ...booking, id: hotelId }));
      await rejects(database.kysely.updateTable('hotel_bookings').set({ version: 0 }));
    });

    for (const broken of [
      { hotel_id: bookingId },
      { status: 'lost' as 'pending' },
      { ends_at: '2030-01-01' },
      { status: 'cancelled' as const },
      { refund: 1 },
      { status: 'cancelled' as const, refund: 101 },
      { expires_at: '2030-01-01T00:00:00.000Z' },
      { price: -1 },
      { currency: 'eur' },
      { guests: 0 },
    ]) {
      it(`reject a booking with ${JSON.stringify(broken)}`, () =>
        rejects(database.kysely.insertInto('hotel_bookings').values({ ...booking, ...broken })));
    }
  });

  describe('transactions', () => {
    it('write nothing if they fail', async () => {
      const failing = database.transact(async (transaction) => {
        await transaction.insertInto('accounts').values({ id: 'a', name: 'A' }).execute();
        throw new Error('on purpose');
      });
      await assert.rejects(failing, /on purpose/);
      assert.equal(await countRows(database, 'accounts'), 0);
    });

    itShared('of two processes wait for each other and lose no update', async () => {
      await insertAccounts(database);
      const other = await openDatabase({ url: scratch.url });
      const readName = ({ dialect, kysely }: Database, within = kysely) => {
        const query = within.selectFrom('accounts').select('name').where('id', '=', 'a');
        return (dialect === 'postgres' ? query.forUpdate() : query).executeTakeFirstOrThrow();
      };
      const append = (to: Database) =>
        to.transact(async (transaction) => {
          const { name } = await readName(to, transaction);
          const update = transaction.updateTable('accounts').set({ name: `${name}x` });
          await update.where('id', '=', 'a').execute();
        });
      await Promise.all([database, other, database, other, database, other].map(append));
      assert.equal((await readName(other)).name, 'Axxxxxx');
      await other.close();
    });
  });

  it('throws StorageUnavailable after it is closed', async () => {
    const find = database.prepareFirst(database.kysely.selectFrom('accounts').select('name').where('id', '=', ''));
    await database.close();
    await assert.rejects(async () => find('a'), StorageUnavailable);
    await assert.rejects(database.kysely.selectFrom('accounts').selectAll().execute(), StorageUnavailable);
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

/** Short words of a few letters, so that filters often match, including characters that are special in LIKE and SQL. */
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

/** Computes the same page by filtering and sorting arrays. */
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

/** Folds the letters of these tests one by one. */
function foldEach(text: string): string {
  return Array.from(text, (letter) => ('İı'.includes(letter) ? 'i' : foldLetter(letter))).join('');
}

function foldLetter(letter: string): string {
  const upper = letter.toUpperCase();
  return (upper.length === 1 ? upper : letter).toLowerCase();
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
