/** The storage contract on SQLite in memory, SQLite in a file and, where TEST_POSTGRES_URL names a server, PostgreSQL. */
import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { describeStorage, type Place } from './storage.ts';

describeStorage('SQLite in memory', async () => ({ url: 'sqlite::memory:', shared: false, remove: async () => {} }));

describeStorage('SQLite in a file', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'frontdesk-'));
  return {
    url: `sqlite:${join(directory, 'data', 'test.db')}`,
    shared: true,
    remove: () => rm(directory, { recursive: true }),
  };
});

const server = process.env['TEST_POSTGRES_URL'];

if (server === undefined) {
  describe('storage: PostgreSQL', () => {
    it('is tested where TEST_POSTGRES_URL names a server whose user may create databases');
  });
} else {
  describeStorage('PostgreSQL', () => createPostgresPlace(server));
}

async function createPostgresPlace(serverUrl: string): Promise<Place> {
  const name = `frontdesk_test_${randomUUID().replaceAll('-', '')}`;
  await run(serverUrl, `create database ${name}`);
  const url = new URL(serverUrl);
  url.pathname = `/${name}`;
  return { url: url.href, shared: true, remove: () => run(serverUrl, `drop database ${name} with (force)`) };
}

async function run(serverUrl: string, statement: string): Promise<void> {
  const client = new pg.Client(serverUrl);
  await client.connect();
  await client.query(statement);
  await client.end();
}
