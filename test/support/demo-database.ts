/** A database in memory with a few rows, closed after the test. */
import { type Database, type DemoRows, loadDemo, openDatabase } from '#storage';
import type { TestServers } from './serve.ts';

/** The time of rows that do not say their own. */
export const demoTimeMs = Date.UTC(2030, 0, 1);

export async function openDemoDatabase(servers: TestServers, rows: DemoRows): Promise<Database> {
  const database = await openDatabase({ url: 'sqlite::memory:' });
  servers.later(database.close);
  await loadDemo(database, rows, { nowMs: demoTimeMs });
  return database;
}
