/** PostgreSQL servers that refuse or break connections. */
import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import pg from 'pg';
import { openDatabase, StorageSetupError } from '#storage';
import { createPostgresDatabase } from '../support/databases.ts';

describe('a PostgreSQL database', () => {
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

  it('whose connections break is used again over new ones', async function () {
    const server = process.env['TEST_POSTGRES_URL'];
    if (server === undefined) this.skip();
    const place = await createPostgresDatabase(server);
    const warnings = new EventEmitter();
    const logger = { warn: (_: object, message?: string) => void warnings.emit('warning', message) };
    const database = await openDatabase({ url: place.url, logger });
    const warning = once(warnings, 'warning');
    const admin = new pg.Client(server);
    await admin.connect();
    const name = new URL(place.url).pathname.slice(1);
    await admin.query('select pg_terminate_backend(pid) from pg_stat_activity where datname = $1', [name]);
    await admin.end();
    assert.match(String(await warning), /connection to the database broke/);
    assert.equal(await database.isReady(), true);
    await database.close();
    await place.remove();
  });
});
