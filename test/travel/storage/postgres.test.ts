/** PostgreSQL servers that reject or drop connections, do not respond, are busy, or are read-only, and transactions in turn. */
import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import { sql } from 'kysely';
import pg from 'pg';
import { delayMsMax } from '#foundation';
import {
  type Database,
  type DatabaseOptions,
  StorageSetupError,
  StorageUnavailable,
} from '../../../src/travel/storage/database.ts';
import { openDatabase } from '../../../src/travel/storage/open-database.ts';
import { createTurns } from '../../../src/travel/storage/postgres.ts';
import { createPostgresDatabase, type ScratchDatabase } from '../../support/databases.ts';
import { selectPage } from '../../support/select-page.ts';
import { type TestServers, testServers } from '../../support/serve.ts';
import { createDeferred, eventually } from '../../support/waiting.ts';

const timeoutMs = 1000;

/** Encodes a message of the server: type, length and text. */
function reply(type: string, text: string): Buffer {
  const length = Buffer.alloc(4);
  length.writeInt32BE(4 + Buffer.byteLength(text));
  return Buffer.concat([Buffer.from(type), length, Buffer.from(text)]);
}

/** The fault of a database that responds with an error. */
const rejects = (code: string) => `The database rejects queries, with error ${code} of PostgreSQL.`;

const failure = (code: string, message: string) => reply('E', `SERROR\0C${code}\0M${message}\0\0`);

describe('a PostgreSQL database', () => {
  const servers = testServers();
  let scratch: ScratchDatabase;
  let database: Database;
  let admin: pg.Client;
  let gate: Gate;

  /** Opens the database through the gate, and a direct connection for the administrator. */
  async function open(context: Mocha.Context, options: Partial<DatabaseOptions> = {}): Promise<void> {
    const server = process.env['TEST_POSTGRES_URL'];
    if (server === undefined) return context.skip();
    scratch = await createPostgresDatabase(server);
    servers.later(() => scratch.remove());
    // Creates the tables first, which may take longer than the time-out of the tests on a busy machine.
    await (await openDatabase({ url: scratch.url })).close();
    gate = await openGate(servers, scratch.url);
    database = await openDatabase({ url: gate.url, timeoutMs, ...options });
    servers.later(() => database.close());
    servers.later(() => gate.open());
    admin = new pg.Client(server);
    servers.later(() => admin.end());
    await admin.connect();
  }

  /** Opens the database another time, as another process would, and closes it after the test. */
  async function openOther(options: Partial<DatabaseOptions> = {}): Promise<Database> {
    const other = await openDatabase({ url: gate.url, timeoutMs, ...options });
    servers.later(() => other.close());
    return other;
  }

  const nameOf = ({ url }: ScratchDatabase) => new URL(url).pathname.slice(1);
  const breakConnections = () =>
    admin.query('select pg_terminate_backend(pid) from pg_stat_activity where datname = $1', [nameOf(scratch)]);
  const insert = (id: string) => database.kysely.insertInto('accounts').values({ id, name: 'A' }).execute();
  const insertTwo = (id: string) =>
    database.kysely.transaction().execute(async (transaction) => {
      for (const each of [id, `${id}2`])
        await transaction.insertInto('accounts').values({ id: each, name: 'A' }).execute();
    });

  /** Expects StorageUnavailable soon after the time-out. Measures with a timer, which is late when the process is. */
  async function refuse(query: Promise<unknown>): Promise<void> {
    const late = setTimeout(() => assert.fail('the query does not fail in time'), 4 * timeoutMs);
    await assert.rejects(query, StorageUnavailable);
    clearTimeout(late);
  }

  it('is reported with the remedy, and without the password, when it refuses connections', async () => {
    // No server listens on port 1, which is privileged.
    const url = 'postgres://demo:secret@127.0.0.1:1/frontdesk';
    await assert.rejects(openDatabase({ url }), (error) => {
      assert.ok(error instanceof StorageSetupError);
      assert.match(error.message, /127\.0\.0\.1:1\/frontdesk: .*ECONNREFUSED.*set DATABASE_URL to/);
      assert.doesNotMatch(error.message, /secret/);
      return true;
    });
  });

  for (const [what, replies, expected] of [
    [
      'is reported with the setting of the pooler when that rejects our time-outs',
      [failure('08P01', 'unsupported startup parameter: statement_timeout')],
      /statement_timeout\. .*ignore_startup_parameters = statement_timeout, idle/,
    ],
    [
      'is reported with the part of the URL to correct when it rejects the password',
      [failure('28P01', 'password authentication failed for user "demo"')],
      /user "demo"\. Correct the user and the password in DATABASE_URL, /,
    ],
    [
      'is reported with the settings for connections when it has too many',
      [failure('53300', 'sorry, too many clients already')],
      /too many clients already\. End other sessions, raise max_connections of the server, or lower DATABASE_POOL /,
    ],
    [
      'is reported with the setting for more time when a statement takes too long',
      [failure('57014', 'canceling statement due to statement timeout')],
      /statement timeout\. End the sessions that lock its tables\. .* raise DATABASE_TIMEOUT_MS for this start$/,
    ],
    [
      'is reported with a hint to start again when it is stopping',
      [failure('57P03', 'the database system is shutting down')],
      /shutting down\. The server ended the session or its statement\. Start again, /,
    ],
    [
      'is reported with the URL parameters for TLS when it requires TLS',
      [failure('28000', 'no pg_hba.conf entry for host "10.0.0.1", user "demo", database "frontdesk", no encryption')],
      /no encryption\. Configure TLS in DATABASE_URL: \?sslmode=verify-full&sslrootcert=/,
    ],
    [
      'is reported with the missing part of the URL when it asks for a password',
      [reply('R', '\0\0\0\x0aSCRAM-SHA-256\0\0'), reply('R', '\0\0\0\x0br=r,s=c2FsdA==,i=4096')],
      /password must be a string\. Correct the user and the password in DATABASE_URL, /,
    ],
  ] as const)
    it(what, async () => {
      const { port } = await servers.tcp((client) => {
        const left: Buffer[] = [...replies];
        client.on('data', () => void client.write(left.shift() ?? ''));
      });
      await assert.rejects(openDatabase({ url: `postgres://demo@127.0.0.1:${port}/frontdesk` }), expected);
    });

  it('is reported with a hint to start again when it ends the session of a migration', async function () {
    await open(this);
    const writer = new pg.Client(scratch.url);
    servers.later(() => writer.end());
    await writer.connect();
    await writer.query('drop schema public cascade; create schema public');
    // The migration waits until this transaction has ended.
    await writer.query('begin; create table hotels ()');
    const endWaiting = `select pg_terminate_backend(pid) from pg_stat_activity where datname = $1 and wait_event_type = 'Lock'`;
    const endMigration = async () => assert.equal((await admin.query(endWaiting, [nameOf(scratch)])).rowCount, 1);
    const opening = openDatabase({ url: scratch.url });
    await Promise.all([
      assert.rejects(opening, /\. The server ended the session or its statement\. Start again, /),
      eventually(endMigration),
    ]);
  });

  it('finds rows by prepared reads behind a pooler that switches server connections', async function () {
    await open(this, { pool: 1 });
    const prepare = ({ kysely, prepareFirst }: Database) =>
      prepareFirst(kysely.selectFrom('accounts').select('name').where('id', '=', ''));
    await insert('a');
    const find = prepare(database);
    assert.deepEqual(await find('a'), { name: 'A' });
    const known = await sql<{ name: string }>`select name from pg_prepared_statements`.execute(database.kysely);
    assert.equal(known.rows.length, 1);
    // Now the connection no longer has the statement,
    await sql`deallocate all`.execute(database.kysely);
    assert.deepEqual(await find('a'), { name: 'A' });
    // or another process has already prepared it.
    const other = await openOther({ pool: 1 });
    const name = sql.id(known.rows[0]?.name ?? '');
    await sql`prepare ${name} (text) as select name from accounts where id = $1`.execute(other.kysely);
    assert.deepEqual(await prepare(other)('a'), { name: 'A' });
  });

  it('names prepared reads after their text, so that processes behind a pooler never mix them up', async function () {
    await open(this, { pool: 1 });
    const prepared = async ({ kysely, prepareFirst }: Database, columns: readonly ('id' | 'name')[]) => {
      const accounts = kysely.selectFrom('accounts').where('id', '=', '');
      for (const column of columns) await prepareFirst(accounts.select(column))('a');
      return (await sql`select name, statement from pg_prepared_statements order by name`.execute(kysely)).rows;
    };
    const other = await openOther({ pool: 1 });
    assert.deepEqual(await prepared(database, ['id', 'name']), await prepared(other, ['name', 'id']));
  });

  it('is reported with the remedy when its encoding is not Unicode', async function () {
    await open(this);
    const name = `${nameOf(scratch)}_latin`;
    await admin.query(`create database ${name} template template0 encoding 'LATIN1' locale_provider libc locale 'C'`);
    const url = new URL(scratch.url);
    url.pathname = `/${name}`;
    servers.later(() => admin.query(`drop database ${name} with (force)`));
    await assert.rejects(openDatabase({ url: url.href }), (error) => {
      assert.ok(error instanceof StorageSetupError);
      assert.match(error.message, /_latin: its encoding LATIN1 cannot represent .* createdb --encoding UTF8/);
      return true;
    });
  });

  it('finds text in any case, also with the C locale and without an encoding', async function () {
    await open(this);
    for (const encoding of ['UTF8', 'SQL_ASCII']) {
      const name = `${nameOf(scratch)}_${encoding.toLowerCase()}`;
      await admin.query(
        `create database ${name} template template0 encoding '${encoding}' locale_provider libc locale 'C'`,
      );
      const url = new URL(scratch.url);
      url.pathname = `/${name}`;
      servers.later(() => admin.query(`drop database ${name} with (force)`));
      const opened = await openDatabase({ url: url.href });
      await opened.kysely.insertInto('accounts').values({ id: 'a', name: 'İstanbul, ZÜRICH' }).execute();
      for (const text of ['istanbul', 'zürich', 'ıST', 'Ü']) {
        const search = { text, columns: ['name'] } as const;
        const list = { offset: 0, limit: 20, fields: undefined, filters: [], sort: [], search };
        const { total } = await selectPage(opened, opened.kysely.selectFrom('accounts').selectAll(), list);
        assert.equal(total, 1, `${text} in ${encoding}`);
      }
      await opened.close();
    }
  });

  it('can contain the tables of a separate frontdesk in each schema', async function () {
    await open(this);
    const inSchema = (name: string) => {
      const url = new URL(scratch.url);
      url.searchParams.set('options', `-c search_path=${name}`);
      return openDatabase({ url: url.href });
    };
    for (const name of ['other', '"Third"']) {
      await assert.rejects(inSchema(name), /its search_path contains no existing schema .* Create one/);
      await sql`create schema ${sql.raw(name)}`.execute(database.kysely);
      // The second round finds the tables of the first.
      for (const id of ['a', 'b']) {
        const opened = await inSchema(name);
        await opened.kysely.insertInto('accounts').values({ id, name: 'A' }).execute();
        await opened.close();
      }
    }
    assert.deepEqual(await database.kysely.selectFrom('accounts').select('id').execute(), []);
  });

  it('is used over new connections after the old ones have failed, which is logged once', async function () {
    const logged: unknown[] = [];
    await open(this, { logger: { warn: (_, message) => void logged.push(message) } });
    const read = () => database.kysely.selectFrom('accounts').select('id').execute();
    await Promise.all([read(), read(), read()]);
    await breakConnections();
    // At first a query may still use a connection that the server has just closed.
    await eventually(async () => assert.equal(await database.findFault(), undefined));
    assert.deepEqual(logged, ['a connection to the database failed']);
  });

  it('is checked once for concurrent callers, because anyone may ask whether the server is ready', async function () {
    await open(this);
    const check = database.findFault();
    assert.equal(database.findFault(), check);
    await check;
    assert.notEqual(database.findFault(), check);
  });

  it('is neither ready nor available while it is read-only, as a standby is', async function () {
    await open(this);
    const setReadOnly = async (setting: 'on' | 'off') => {
      await admin.query(`alter database ${nameOf(scratch)} set default_transaction_read_only = ${setting}`);
      await breakConnections();
    };
    // At first a query may still use a connection that the server has just closed.
    const find = (fault: string | undefined) => eventually(async () => assert.equal(await database.findFault(), fault));
    await setReadOnly('on');
    await find('The database is read-only. It may be a standby.');
    await refuse(insertTwo('a'));
    await setReadOnly('off');
    await find(undefined);
    await insertTwo('a');
  });

  describe('behind an address that led to a standby for a while', () => {
    const process = () => sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(database.kysely);
    const pid = async () => (await process()).rows[0]?.pid;

    /** Connects to a server that is read-only at that time, and makes it writable again for later connections only. */
    async function connectToStandby(context: Mocha.Context): Promise<void> {
      await open(context, { pool: 1 });
      const setReadOnly = (setting: 'on' | 'off') =>
        admin.query(`alter database ${nameOf(scratch)} set default_transaction_read_only = ${setting}`);
      await setReadOnly('on');
      await breakConnections();
      // At first a query may still use the connection that the server has just closed.
      await eventually(pid);
      await setReadOnly('off');
    }

    for (const [what, write] of [
      ['a statement', insert],
      ['a transaction', insertTwo],
    ] as const)
      it(`is the primary again after ${what} that the standby refuses`, async function () {
        await connectToStandby(this);
        await assert.rejects(write('a'), (error: Error) => /read-only/.test(String((error.cause as Error).message)));
        await write('a');
      });

    it('is the primary again after the check of readiness that finds the standby', async function () {
      await connectToStandby(this);
      assert.equal(await database.findFault(), 'The database is read-only. It may be a standby.');
      assert.equal(await database.findFault(), undefined);
      await insert('a');
    });

    const fail = (code: string) =>
      sql.raw(`do $$ begin raise exception using errcode = '${code}'; end $$`).execute(database.kysely);

    for (const code of ['08006', '08P01', '25006', '3D000', '42P01', '57P01', '57P02', '57P03', '57P04', '57P05'])
      it(`is used over a new connection after error ${code}`, async function () {
        await open(this, { pool: 1 });
        const before = await pid();
        await assert.rejects(fail(code), StorageUnavailable);
        assert.notEqual(await pid(), before);
      });

    for (const code of ['23505', '40001', '55P03', '57014'])
      it(`is used over the same connection after error ${code}, which says nothing about the server`, async function () {
        await open(this, { pool: 1 });
        const before = await pid();
        await assert.rejects(fail(code));
        assert.equal(await pid(), before);
      });
  });

  it('is unavailable while it denies access, for example after a change of the password', async function () {
    await open(this, { pool: 1 });
    await insert('a');
    const name = nameOf(scratch);
    await breakConnections();
    await admin.query(`alter database ${name} rename to ${name}_away`);
    // The first attempt may still use the connection that the server has just closed.
    await eventually(async () => assert.equal(await database.findFault(), rejects('3D000')));
    await refuse(insert('b'));
    await admin.query(`alter database ${name}_away rename to ${name}`);
    await insert('b');
  });

  it('says what to do when the server no longer accepts its user', async function () {
    await open(this);
    const user = `${nameOf(scratch)}_user`;
    await admin.query(`create role ${user} login superuser password 'secret'`);
    servers.later(() => admin.query(`drop role ${user}`));
    const url = Object.assign(new URL(scratch.url), { username: user, password: 'secret' });
    const opened = await openDatabase({ url: url.href });
    await admin.query(`alter role ${user} nologin`);
    await breakConnections();
    // The first attempt may still use the connection that the server has just closed.
    await eventually(async () => assert.match(String(await opened.findFault()), /28000 .*\. Correct the user and the/));
    await opened.close();
  });

  it('is not ready while it rejects a prepared read, because of a lost right or a missing table', async function () {
    await open(this);
    const run = (statement: string) => sql.raw(statement).execute(database.kysely);
    const role = `${nameOf(scratch)}_reader`;
    await run(`create role ${role}; grant select on all tables in schema public to ${role}`);
    const url = new URL(scratch.url);
    url.searchParams.set('options', `-c role=${role}`);
    servers.later(() => run(`drop owned by ${role}; drop role ${role}`));
    const reader = await openOther({ url: url.href });
    const find = reader.prepareFirst(reader.kysely.selectFrom('accounts').select('name').where('id', '=', ''));
    assert.equal(await reader.findFault(), undefined);
    await run(`revoke select on accounts from ${role}`);
    assert.equal(await reader.findFault(), rejects('42501'));
    await assert.rejects(async () => find('a'), StorageUnavailable);
    await run(`grant select on accounts to ${role}; alter table accounts rename to away`);
    assert.equal(await reader.findFault(), rejects('42P01'));
    await run('alter table away rename to accounts');
    assert.equal(await reader.findFault(), undefined);
  });

  it('is unavailable after the time-out while all connections are in use', async function () {
    await open(this, { pool: 1 });
    await database.kysely.transaction().execute(async () => {
      await refuse(insert('a'));
    });
    await insert('a');
  });

  it('serves other requests while transactions wait for the same lock, until each gives up in time', async function () {
    await open(this, { pool: 2 });
    await insert('a');
    const change = () =>
      database.transact(
        (transaction) => transaction.updateTable('accounts').set({ name: 'B' }).where('id', '=', 'a').execute(),
        ['accounts', 'a'],
      );
    const owner = new pg.Client(scratch.url);
    await owner.connect();
    servers.later(() => owner.end());
    await owner.query(`begin; update accounts set name = 'C'`);
    const waiting = Promise.all(Array.from({ length: 5 }, () => refuse(change())));
    await insert('b');
    await waiting;
    await owner.query('rollback');
    await change();
  });

  it('lets transactions see what others commit in the meantime, even if its default isolation is stricter', async function () {
    await open(this);
    await admin.query(`alter database ${nameOf(scratch)} set default_transaction_isolation = 'repeatable read'`);
    const later = await openOther();
    await later.transact(async (transaction) => {
      const count = async () => (await transaction.selectFrom('accounts').select('id').execute()).length;
      assert.equal(await count(), 0);
      await insert('a');
      assert.equal(await count(), 1);
    });
  });

  it('accepts the longest time-out that can be set', async function () {
    await open(this, { timeoutMs: delayMsMax });
    await insert('a');
  });

  it('cancels a long-running statement in time', async function () {
    await open(this);
    await refuse(database.kysely.transaction().execute((transaction) => sql`select pg_sleep(60)`.execute(transaction)));
    await insertTwo('a');
  });

  it('is used over a new connection after it has vanished without closing the old one', async function () {
    await open(this, { pool: 1 });
    gate.loseConnections();
    await refuse(insertTwo('a'));
    await insertTwo('a');
  });

  it('is neither ready nor available while it does not respond, and reports so within the time-out', async function () {
    await open(this, { pool: 1 });
    gate.shut();
    await refuse(insertTwo('a'));
    assert.equal(await database.findFault(), 'The database does not respond.');
    gate.open();
    await insertTwo('a');
  });
});

/** A TCP proxy that can stop forwarding. */
interface Gate {
  readonly url: string;
  /** Drops all data, but keeps connections open. */
  readonly shut: () => void;
  /** Forwards data again. */
  readonly open: () => void;
  /** Drops all data of the current connections from now on, but keeps them open. */
  readonly loseConnections: () => void;
}

async function openGate(servers: TestServers, target: string): Promise<Gate> {
  const url = new URL(target);
  const { hostname, port } = url;
  let isShut = false;
  let generation = 0;
  const gate = await servers.tcp((client) => {
    const own = generation;
    const upstream = connect(Number(port), hostname);
    for (const [from, to] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      from.on('data', (chunk) => isShut || own < generation || to.write(chunk));
      from.on('close', () => to.destroy()).on('error', () => {});
    }
  });
  url.host = `127.0.0.1:${gate.port}`;
  return {
    url: url.href,
    shut: () => {
      isShut = true;
    },
    open: () => {
      isShut = false;
    },
    loseConnections: () => {
      generation += 1;
    },
  };
}

describe('turns', () => {
  it('run calls with the same name in order, also after one that fails, and other calls at once', async () => {
    const inTurn = createTurns(60_000);
    const ran: string[] = [];
    const run = (name: string) => async () => void ran.push(name);
    const first = createDeferred();
    const calls = [
      inTurn('a', () => first.promise.then(run('first'))),
      assert.rejects(
        inTurn('a', async () => assert.fail('lost')),
        /lost/,
      ),
      inTurn('a', run('third')),
      inTurn('b', run('other')),
    ];
    await calls[3];
    first.resolve();
    await Promise.all(calls);
    assert.deepEqual(ran, ['other', 'first', 'third']);
  });

  it('make a call wait for the one before it, even if an earlier one has ended since', async () => {
    const inTurn = createTurns(60_000);
    const [first, second] = [createDeferred(), createDeferred()];
    const ran: string[] = [];
    const calls = [inTurn('a', () => first.promise), inTurn('a', () => second.promise.then(() => ran.push('second')))];
    first.resolve();
    await calls[0];
    await setImmediate();
    calls.push(inTurn('a', async () => ran.push('third')));
    second.resolve();
    await Promise.all(calls);
    assert.deepEqual(ran, ['second', 'third']);
  });

  it('reject a call that waits too long, without letting the next one overtake those before it', async () => {
    const inTurn = createTurns(1);
    const first = createDeferred();
    const slow = inTurn('a', () => first.promise);
    const late = () => inTurn('a', async () => assert.fail('overtook'));
    await assert.rejects(late(), StorageUnavailable);
    await assert.rejects(late(), StorageUnavailable);
    first.resolve();
    await slow;
    assert.equal(await inTurn('a', async () => 'next'), 'next');
  });
});
