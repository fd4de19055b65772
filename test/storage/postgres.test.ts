/** A PostgreSQL server that is away, or goes away, is an error to read and not the end of us. */
import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import { createServer } from 'node:net';
import pg from 'pg';
import { openDatabase, StorageSetupError } from '#storage';

describe('a PostgreSQL database', () => {
  it('that cannot be reached is named with the remedy, without its password', async () => {
    const url = `postgres://demo:secret@127.0.0.1:${await closedPort()}/frontdesk`;
    await assert.rejects(openDatabase({ url }), (error) => {
      assert.ok(error instanceof StorageSetupError);
      assert.match(error.message, /127\.0\.0\.1:\d+\/frontdesk: .*ECONNREFUSED.*let DATABASE_URL name/);
      assert.doesNotMatch(error.message, /secret/);
      return true;
    });
  });

  it('that breaks its connections is used again over new ones', async function () {
    const url = process.env['TEST_POSTGRES_URL'];
    if (url === undefined) this.skip();
    const name = `frontdesk_break_${process.pid}`;
    const admin = new pg.Client(url);
    await admin.connect();
    await admin.query(`create database ${name}`);
    const place = new URL(url);
    place.pathname = name;
    const warnings = new EventEmitter();
    const logger = { warn: (_: object, message?: string) => void warnings.emit('warning', message) };
    const database = await openDatabase({ url: place.href, logger });
    const warning = once(warnings, 'warning');
    await admin.query('select pg_terminate_backend(pid) from pg_stat_activity where datname = $1', [name]);
    assert.match(String(await warning), /connection to the database broke/);
    assert.equal(await database.isReady(), true);
    await database.close();
    await admin.query(`drop database ${name} with (force)`);
    await admin.end();
  });
});

function closedPort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => resolve(typeof address === 'object' && address !== null ? address.port : 0));
    });
  });
}
