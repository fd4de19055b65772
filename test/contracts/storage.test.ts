/** The storage contract on SQLite in memory, SQLite in a file and, where TEST_POSTGRES_URL names a server, PostgreSQL. */
import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { describeStorage, type Place } from './storage.ts';

describeStorage({ name: 'SQLite in memory', shared: false }, async () => ({
  url: 'sqlite::memory:',
  remove: async () => {},
}));

describeStorage({ name: 'SQLite in a file', shared: true }, async () => {
  const directory = await mkdtemp(join(tmpdir(), 'frontdesk-'));
  return {
    url: `sqlite:${join(directory, 'data', 'test.db')}`,
    remove: () => rm(directory, { recursive: true }),
  };
});

const server = process.env['TEST_POSTGRES_URL'];

if (server === undefined) {
  describe('storage: PostgreSQL', () => {
    it('is tested where TEST_POSTGRES_URL names a server (15 or newer) whose user may create databases');
  });
} else {
  describeStorage({ name: 'PostgreSQL', shared: true }, () => createPostgresPlace(server));
}

/** In a locale that sorts by its language, as most servers do, so that our own order is seen to hold. */
async function createPostgresPlace(serverUrl: string): Promise<Place> {
  const name = `frontdesk_test_${randomUUID().replaceAll('-', '')}`;
  await run(serverUrl, `create database ${name} template template0 locale_provider icu icu_locale 'en-US'`);
  const url = new URL(serverUrl);
  url.pathname = `/${name}`;
  return { url: url.href, remove: () => run(serverUrl, `drop database ${name} with (force)`) };
}

async function run(serverUrl: string, statement: string): Promise<void> {
  const client = new pg.Client(serverUrl);
  await client.connect();
  await client.query(statement);
  await client.end();
}
