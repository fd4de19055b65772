/** A database on a primary and a standby: the one that accepts writes is used, before and after a failover. */
import assert from 'node:assert/strict';
import { type Database, StorageSetupError } from '../../../src/travel/storage/database.ts';
import { openDatabase } from '../../../src/travel/storage/open-database.ts';
import {
  createPrimary,
  createStandby,
  findPostgres,
  type PostgresServer,
} from '../../support/programs/postgres-server.ts';
import { testServers } from '../../support/serve.ts';
import { eventually } from '../../support/waiting.ts';

const bin = findPostgres();

describe('a PostgreSQL database on several servers', () => {
  if (bin === undefined) {
    it('needs pg_basebackup of PostgreSQL');
    return;
  }
  const servers = testServers();
  let primary: PostgresServer;
  let standby: PostgresServer;

  beforeEach(async () => {
    primary = await createPrimary(bin);
    servers.later(primary.remove);
    await primary.start();
    standby = await createStandby(bin, primary);
    servers.later(standby.remove);
    await standby.start();
  });

  const urlOf = (list: readonly PostgresServer[], parameters = '') =>
    `postgres://postgres@${list.map(({ port }) => `127.0.0.1:${port}`).join()}/postgres${parameters}`;

  async function open(url: string): Promise<Database> {
    const database = await openDatabase({ url, timeoutMs: 5_000 });
    servers.later(() => database.close());
    return database;
  }

  let ids = 0;
  function insert(database: Database) {
    ids += 1;
    return database.kysely
      .insertInto('accounts')
      .values({ id: `id ${ids}`, name: 'A' })
      .execute();
  }

  const rowsIn = async (server: PostgresServer) =>
    Number((await server.query('select count(*) as found from accounts'))[0]?.['found']);

  it('uses the primary although the standby comes first, with and without target_session_attrs', async () => {
    for (const parameters of ['', '?target_session_attrs=read-write', '?target_session_attrs=primary']) {
      const database = await open(urlOf([standby, primary], parameters));
      await insert(database);
      assert.equal(await database.findFault(), undefined);
    }
    assert.equal(await rowsIn(primary), 3);
  });

  it('uses the promoted standby after the primary has been killed, and not the old primary that is a standby', async () => {
    const database = await open(urlOf([primary, standby]));
    await insert(database);
    await eventually(async () => assert.equal(await rowsIn(standby), 1));
    await primary.kill();
    await assert.rejects(insert(database));
    assert.match(String(await database.findFault()), /read-only|does not respond/);
    await standby.query('select pg_promote()');
    await eventually(() => insert(database), 50);
    await eventually(async () => assert.equal(await database.findFault(), undefined));
    assert.equal(await rowsIn(standby), 2);
  });

  it('leaves a server that has become read-only', async () => {
    const database = await open(urlOf([primary, standby]));
    await insert(database);
    await eventually(async () => assert.equal(await rowsIn(standby), 1));
    await standby.query('select pg_promote()');
    await primary.query('alter system set default_transaction_read_only = on');
    await primary.query('select pg_reload_conf()');
    // Until its processes have read the new configuration, it still takes some.
    await eventually(async () => {
      await insert(database);
      assert.ok((await rowsIn(standby)) > 1);
    }, 50);
  });

  it('is an error at the start that names each server and its reason, and the remedy', async () => {
    const database = await open(urlOf([primary]));
    await database.close();
    await primary.kill();
    await assert.rejects(openDatabase({ url: urlOf([primary, standby]), timeoutMs: 5_000 }), (error) => {
      assert.ok(error instanceof StorageSetupError);
      const reasons = `127.0.0.1:${primary.port}: .*ECONNREFUSED.*; 127.0.0.1:${standby.port}: it is read-only`;
      assert.match(
        error.message,
        new RegExp(`no server accepts writes \\(${reasons}.*Name the primary in DATABASE_URL`),
      );
      return true;
    });
  });

  it('is an error at the start if its only server is read-only', async () => {
    await assert.rejects(open(urlOf([standby], '?target_session_attrs=read-write')), /it is read-only/);
  });
});
