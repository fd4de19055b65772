/** The database of a process: opened where a module needs one, with the demo's rows if asked for, and its absence in our terms. */
import { type Problem, problem } from '#http';
import { type Database, loadDemo, openDatabase, StorageUnavailable } from '#storage';
import type { Settled } from './options.ts';

/** Undefined: no module of this process needs one. Rejects with an Error fit for a terminal. */
export async function openStorage({
  settings,
  configuration,
  logger,
  clock,
  demo,
  has,
}: Settled): Promise<Database | undefined> {
  if (!has('hotel') && !has('car') && !has('api')) return undefined;
  const database = await openDatabase({ url: settings.databaseUrl, logger });
  try {
    if (demo) await loadDemo(database, configuration.demo, { nowMs: clock() });
  } catch (error) {
    await database.close();
    throw error;
  }
  return database;
}

/** Undefined: it is an error of another kind. */
export function storageProblem(thrown: unknown): Problem | undefined {
  if (!(thrown instanceof StorageUnavailable)) return undefined;
  return problem('storage-unavailable', { headers: { 'Retry-After': '1' }, cause: thrown.cause });
}
