/** Runs the storage contract on SQLite in memory, SQLite in a file and, if TEST_POSTGRES_URL is set, PostgreSQL. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createPostgresDatabase } from '../support/databases.ts';
import { describeStorage } from './storage.ts';

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
    it('needs TEST_POSTGRES_URL: a server (15 or newer) with a user who may create databases');
  });
} else {
  describeStorage({ name: 'PostgreSQL', shared: true }, () => createPostgresDatabase(server));
}
