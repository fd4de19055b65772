/** Databases for tests: in memory with a few rows, and in SQLite files or PostgreSQL for several processes. */
import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { type DemoRows, loadDemo } from '../../src/travel/demo.ts';
import type { Database } from '../../src/travel/storage/database.ts';
import { openDatabase } from '../../src/travel/storage/open-database.ts';
import type { TestServers } from './serve.ts';

/** The default time of demo rows. */
export const demoTimeMs = Date.UTC(2030, 0, 1);

export async function openDemoDatabase(servers: TestServers, rows: DemoRows): Promise<Database> {
  const database = await openDatabase({ url: 'sqlite::memory:' });
  servers.later(database.close);
  await loadDemo(database, rows, { nowMs: demoTimeMs });
  return database;
}

export interface ScratchDatabase {
  /** The value for DATABASE_URL. */
  readonly url: string;
  /** Deletes the database and its contents. */
  readonly remove: () => Promise<void>;
}

/** Adds a `describe` for each kind of database. PostgreSQL's is pending unless TEST_POSTGRES_URL is set. */
export function describeOnDatabases(title: string, tests: (create: () => Promise<ScratchDatabase>) => void): void {
  const server = process.env['TEST_POSTGRES_URL'];
  describe(`${title}: SQLite`, () => tests(createSqliteFile));
  describe(`${title}: PostgreSQL`, () => {
    if (server === undefined) it('needs TEST_POSTGRES_URL: a server (15 or newer) whose user may create databases');
    else tests(() => createPostgresDatabase(server));
  });
}

async function createSqliteFile(): Promise<ScratchDatabase> {
  const directory = await mkdtemp(join(tmpdir(), 'frontdesk-'));
  return {
    url: `sqlite:${join(directory, 'test.db')}`,
    remove: () => rm(directory, { recursive: true, force: true }),
  };
}

/** Uses a locale that sorts by language, as most servers do, to show that our own sort order applies. */
export async function createPostgresDatabase(serverUrl: string): Promise<ScratchDatabase> {
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
