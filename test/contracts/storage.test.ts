/** Runs the storage contract on SQLite in memory, SQLite in a file and, if TEST_POSTGRES_URL is set, PostgreSQL. */
import { describeOnDatabases } from '../support/databases.ts';
import { storageContract } from './storage.ts';

describe('storage: SQLite in memory', () =>
  storageContract(async () => ({ url: 'sqlite::memory:', remove: async () => {} }), { isShared: false }));

describeOnDatabases('storage', storageContract);
