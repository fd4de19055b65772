/** PostgreSQL servers that refuse connections, break them, fall silent, are busy or take no writes. */
import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { sql } from 'kysely';
import pg from 'pg';
import { type Database, type DatabaseOptions, openDatabase, StorageSetupError, StorageUnavailable } from '#storage';
import { createPostgresDatabase, type ScratchDatabase } from '../support/databases.ts';
import { eventually } from '../support/waiting.ts';

const timeoutMs = 1000;

/** A message of the server: its type, its length, its text. */
function reply(type: string, text: string): Buffer {
  const length = Buffer.alloc(4);
  length.writeInt32BE(4 + Buffer.byteLength(text));
  return Buffer.concat([Buffer.from(type), length, Buffer.from(text)]);
}

const failure = (code: string, message: string) => reply('E', `SERROR\0C${code}\0M${message}\0\0`);

describe('a PostgreSQL database', () => {
  let place: ScratchDatabase;
  let database: Database;
  let admin: pg.Client;
  let gate: Gate;

  /** Through the gate, with a connection for an administrator beside it. */
  async function open(context: Mocha.Context, options: Partial<DatabaseOptions> = {}): Promise<void> {
    const server = process.env['TEST_POSTGRES_URL'];
    if (server === undefined) return context.skip();
    place = await createPostgresDatabase(server);
    // The tables take longer than the time-out of a test on a busy machine.
    await (await openDatabase({ url: place.url })).close();
    gate = await openGate(place.url);
    database = await openDatabase({ url: gate.url, timeoutMs, ...options });
    admin = new pg.Client(server);
    await admin.connect();
  }

  afterEach(async () => {
    gate?.open();
    await database?.close();
    gate?.close();
    await admin?.end();
    await place?.remove();
  });

  const nameOf = ({ url }: ScratchDatabase) => new URL(url).pathname.slice(1);
  const breakConnections = () =>
    admin.query('select pg_terminate_backend(pid) from pg_stat_activity where datname = $1', [nameOf(place)]);
  const insert = (id: string) => database.kysely.insertInto('accounts').values({ id, name: 'A' }).execute();
  const insertTwo = (id: string) =>
    database.kysely.transaction().execute(async (transaction) => {
      for (const each of [id, `${id}2`])
        await transaction.insertInto('accounts').values({ id: each, name: 'A' }).execute();
    });

  /** Fails as unavailable, and not much later than the time-out: by a timer, which is late when the process is. */
  async function refuse(query: Promise<unknown>): Promise<void> {
    const late = setTimeout(() => assert.fail('it is not refused'), 4 * timeoutMs);
    await assert.rejects(query, StorageUnavailable);
    clearTimeout(late);
  }

  it('that refuses connections is named with the remedy, without its password', async () => {
    // A port that no server has: a connection to port 1 needs a privileged process to accept it.
    const url = 'postgres://demo:secret@127.0.0.1:1/frontdesk';
    await assert.rejects(openDatabase({ url }), (error) => {
      assert.ok(error instanceof StorageSetupError);
      assert.match(error.message, /127\.0\.0\.1:1\/frontdesk: .*ECONNREFUSED.*let DATABASE_URL name/);
      assert.doesNotMatch(error.message, /secret/);
      return true;
    });
  });

  for (const [what, replies, expected] of [
    [
      'behind a pooler that refuses our time-outs is named with the setting of the pooler',
      [failure('08P01', 'unsupported startup parameter: statement_timeout')],
      /statement_timeout\. .*ignore_startup_parameters = statement_timeout, idle/,
    ],
    [
      'that refuses the password is named with what is wrong in its URL',
      [failure('28P01', 'password authentication failed for user "demo"')],
      /user "demo"\. Correct the user and the password in DATABASE_URL, /,
    ],
    [
      'that wants TLS is named with how the URL says so',
      [failure('28000', 'no pg_hba.conf entry for host "10.0.0.1", user "demo", database "frontdesk", no encryption')],
      /no encryption\. Let DATABASE_URL say how: \?sslmode=verify-full&sslrootcert=/,
    ],
    [
      'that asks for a password is named with what is missing in its URL',
      [reply('R', '\0\0\0\x0aSCRAM-SHA-256\0\0'), reply('R', '\0\0\0\x0br=r,s=c2FsdA==,i=4096')],
      /password must be a string\. Correct the user and the password in DATABASE_URL, /,
    ],
  ] as const)
    it(what, async () => {
      const clients: Socket[] = [];
      const server = createServer((client) => {
        const left: Buffer[] = [...replies];
        clients.push(client);
        client.on('data', () => void client.write(left.shift() ?? ''));
      });
      await once(server.listen(0, '127.0.0.1'), 'listening');
      try {
        const url = `postgres://demo@127.0.0.1:${(server.address() as AddressInfo).port}/frontdesk`;
        await assert.rejects(openDatabase({ url }), expected);
      } finally {
        // pg leaves that to the server.
        for (const client of clients) client.destroy();
        server.close();
      }
    });

  it('behind a pooler that changes the connections of the server finds what it reads', async function () {
    await open(this, { pool: 1 });
    const prepare = ({ kysely, prepareFirst }: Database) =>
      prepareFirst(kysely.selectFrom('accounts').select('name').where('id', '=', ''));
    await insert('a');
    const find = prepare(database);
    assert.deepEqual(await find('a'), { name: 'A' });
    const known = await sql<{ name: string }>`select name from pg_prepared_statements`.execute(database.kysely);
    assert.equal(known.rows.length, 1);
    // The connection that it reaches then knows nothing of its statement,
    await sql`deallocate all`.execute(database.kysely);
    assert.deepEqual(await find('a'), { name: 'A' });
    // or has it from another process.
    const other = await openDatabase({ url: gate.url, timeoutMs, pool: 1 });
    try {
      await sql`prepare ${sql.id(known.rows[0]?.name ?? '')} (text) as select name from accounts where id = $1`.execute(
        other.kysely,
      );
      assert.deepEqual(await prepare(other)('a'), { name: 'A' });
    } finally {
      await other.close();
    }
  });

  it('knows a prepared read by its text, so that no process runs that of another through a pooler', async function () {
    await open(this, { pool: 1 });
    const prepared = async ({ kysely, prepareFirst }: Database, columns: readonly ('id' | 'name')[]) => {
      const accounts = kysely.selectFrom('accounts').where('id', '=', '');
      for (const column of columns) await prepareFirst(accounts.select(column))('a');
      return (await sql`select name, statement from pg_prepared_statements order by name`.execute(kysely)).rows;
    };
    const other = await openDatabase({ url: gate.url, timeoutMs, pool: 1 });
    try {
      assert.deepEqual(await prepared(database, ['id', 'name']), await prepared(other, ['name', 'id']));
    } finally {
      await other.close();
    }
  });

  it('whose encoding lacks letters is refused with the remedy', async function () {
    await open(this);
    const name = `${nameOf(place)}_latin`;
    await admin.query(`create database ${name} template template0 encoding 'LATIN1' locale_provider libc locale 'C'`);
    const url = new URL(place.url);
    url.pathname = `/${name}`;
    try {
      await assert.rejects(openDatabase({ url: url.href }), (error) => {
        assert.ok(error instanceof StorageSetupError);
        assert.match(error.message, /_latin: its encoding LATIN1 lacks letters .* createdb --encoding UTF8/);
        return true;
      });
    } finally {
      await admin.query(`drop database ${name} with (force)`);
    }
  });

  it('has the tables of another frontdesk in each schema', async function () {
    await open(this);
    const inSchema = (name: string) => {
      const url = new URL(place.url);
      url.searchParams.set('options', `-c search_path=${name}`);
      return openDatabase({ url: url.href });
    };
    for (const name of ['other', '"Third"']) {
      await assert.rejects(inSchema(name), /its search_path names no schema .* Create one/);
      await sql`create schema ${sql.raw(name)}`.execute(database.kysely);
      // The second one finds what the first has made.
      for (const id of ['a', 'b']) {
        const opened = await inSchema(name);
        await opened.kysely.insertInto('accounts').values({ id, name: 'A' }).execute();
        await opened.close();
      }
    }
    assert.deepEqual(await database.kysely.selectFrom('accounts').select('id').execute(), []);
  });

  it('whose connections break is used again over new ones', async function () {
    const warnings = new EventEmitter();
    const warning = once(warnings, 'warning');
    await open(this, { logger: { warn: (_, message) => void warnings.emit('warning', message) } });
    await breakConnections();
    assert.match(String(await warning), /connection to the database broke/);
    assert.equal(await database.findFault(), undefined);
  });

  it('that takes no writes, as a standby, is not ready and unavailable, until it takes them', async function () {
    await open(this);
    const setReadOnly = async (setting: 'on' | 'off') => {
      await admin.query(`alter database ${nameOf(place)} set default_transaction_read_only = ${setting}`);
      await breakConnections();
    };
    // At first a query may still meet a connection that the server has just ended.
    const find = (fault: string | undefined) => eventually(async () => assert.equal(await database.findFault(), fault));
    await setReadOnly('on');
    await find('The database is read-only, as a standby is.');
    await refuse(insertTwo('a'));
    await setReadOnly('off');
    await find(undefined);
    await insertTwo('a');
  });

  it('that lets nobody in, as after a change of the password, is unavailable until it does', async function () {
    await open(this, { pool: 1 });
    await insert('a');
    const name = nameOf(place);
    await breakConnections();
    await admin.query(`alter database ${name} rename to ${name}_away`);
    // The first may still meet the connection that the server has just ended.
    for (let times = 0; times < 2; times += 1)
      assert.equal(await database.findFault(), 'The database gives no answer.');
    await refuse(insert('b'));
    await admin.query(`alter database ${name}_away rename to ${name}`);
    await insert('b');
  });

  it('whose connections are all in use is unavailable after the time-out, until one is free', async function () {
    await open(this, { pool: 1 });
    await database.kysely.transaction().execute(async () => {
      await refuse(insert('a'));
    });
    await insert('a');
  });

  it('whose server isolates transactions more by default shows them what others commit while they wait for a lock', async function () {
    await open(this);
    await admin.query(`alter database ${nameOf(place)} set default_transaction_isolation = 'repeatable read'`);
    const later = await openDatabase({ url: gate.url, timeoutMs });
    try {
      await later.transact(async (transaction) => {
        const count = async () => (await transaction.selectFrom('accounts').select('id').execute()).length;
        assert.equal(await count(), 0);
        await insert('a');
        assert.equal(await count(), 1);
      });
    } finally {
      await later.close();
    }
  });

  it('that is busy with a statement cancels it in time', async function () {
    await open(this);
    await refuse(database.kysely.transaction().execute((transaction) => sql`select pg_sleep(60)`.execute(transaction)));
    await insertTwo('a');
  });

  it('that falls silent is not ready and unavailable within the time-out, until it answers', async function () {
    await open(this, { pool: 1 });
    gate.shut();
    await refuse(insertTwo('a'));
    assert.equal(await database.findFault(), 'The database gives no answer.');
    gate.open();
    await insertTwo('a');
  });
});

interface Gate {
  readonly url: string;
  /** Lets nothing through, and closes nothing. */
  readonly shut: () => void;
  /** For new connections. */
  readonly open: () => void;
  readonly close: () => void;
}

async function openGate(target: string): Promise<Gate> {
  const { hostname, port } = new URL(target);
  const sockets = new Set<Socket>();
  let isShut = false;
  const server: Server = createServer((client) => {
    const upstream = connect(Number(port), hostname);
    for (const [from, to] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(from);
      from.on('data', (chunk) => isShut || to.write(chunk));
      from.on('close', () => to.destroy()).on('error', () => {});
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = new URL(target);
  url.hostname = '127.0.0.1';
  url.port = String((server.address() as AddressInfo).port);
  return {
    url: url.href,
    shut: () => {
      isShut = true;
    },
    open: () => {
      isShut = false;
    },
    close() {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}
