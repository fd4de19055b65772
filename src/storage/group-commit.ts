/** Transactions of SQLite that share a commit, and so its fsync: what arrives together becomes durable together. */
import { setImmediate } from 'node:timers/promises';
import { CompiledQuery, type Kysely, type Transaction } from 'kysely';
import type { Transact } from './database.ts';
import type { Tables } from './schema.ts';

/** The first of a group waits for the last one. */
const groupMax = 64;

/** A work that waits for its turn. `run` does it and returns what settles its promise, to be called after the commit. */
interface Waiting {
  readonly run: (transaction: Transaction<Tables>, runWork: RunWork) => Promise<Settle>;
  readonly fail: (error: unknown) => void;
}

type Settle = () => void;

/** Throws the work's error when nothing of the work is left in the transaction, else GroupFailed. */
type RunWork = <T>(
  transaction: Transaction<Tables>,
  work: (transaction: Transaction<Tables>) => Promise<T>,
) => Promise<T>;

/**
 * The commit blocks the event loop until the disk has the data, so that meanwhile others arrive. They run one after the
 * other in the next transaction. None is answered before the commit, a refusal neither, since it may rest on what another
 * of the group wrote; when the commit fails, all fail. One that throws is undone alone: most have written nothing by
 * then. When one has, which is rare, its group is rolled back and runs again with a savepoint around each.
 *
 * `countChanges` counts the rows that the connection has ever written; undefined while it has no transaction.
 */
export function createGroupCommit(kysely: Kysely<Tables>, countChanges: () => number | undefined): Transact {
  const waiting: Waiting[] = [];
  let isRunning = false;

  async function runAll(): Promise<void> {
    isRunning = true;
    while (waiting.length > 0) await runGroup(unlessWritten);
    isRunning = false;
  }

  async function runGroup(runWork: RunWork): Promise<void> {
    const group: Waiting[] = [];
    try {
      for (const settle of await commitGroup(group, runWork)) settle();
    } catch (error) {
      if (!(error instanceof GroupFailed)) return fail(group, error);
      if (runWork === inSavepoint) return fail(group, error.cause);
      waiting.unshift(...group);
      await runGroup(inSavepoint);
    }
  }

  /** A transaction that did not begin has no group: then those that wait fail with it, as each would alone. */
  function fail(group: readonly Waiting[], error: unknown): void {
    for (const each of group.length > 0 ? group : waiting.splice(0)) each.fail(error);
  }

  /** Fills the group with the works that it has begun. */
  function commitGroup(group: Waiting[], runWork: RunWork): Promise<readonly Settle[]> {
    return kysely.transaction().execute(async (transaction) => {
      const settles: Settle[] = [];
      for (let next = waiting.shift(); next !== undefined; next = await nextOf(group)) {
        group.push(next);
        settles.push(await next.run(transaction, runWork));
      }
      return settles;
    });
  }

  /** One that waits, or that has arrived within a turn of the event loop. */
  async function nextOf(group: readonly Waiting[]): Promise<Waiting | undefined> {
    if (group.length >= groupMax) return undefined;
    if (waiting.length === 0) await setImmediate();
    return waiting.shift();
  }

  /** Without a savepoint, within which SQLite copies each page before it first changes. */
  async function unlessWritten<T>(
    transaction: Transaction<Tables>,
    work: (transaction: Transaction<Tables>) => Promise<T>,
  ): Promise<T> {
    const before = countChanges();
    try {
      return await work(transaction);
    } catch (error) {
      if (countChanges() === before) throw error;
      throw new GroupFailed('the work had written', { cause: error });
    }
  }

  return function transact(work) {
    return new Promise((resolve, reject) => {
      const run: Waiting['run'] = (transaction, runWork) =>
        runWork(transaction, work).then(
          (result) => () => resolve(result),
          (error) => {
            if (error instanceof GroupFailed) throw error;
            return () => reject(error);
          },
        );
      waiting.push({ run, fail: reject });
      if (!isRunning) void runAll();
    });
  };
}

/** What a work wrote cannot be undone alone: it has no savepoint, or SQLite has rolled back the transaction by itself, as when the disk is full. */
class GroupFailed extends Error {}

async function inSavepoint<T>(
  transaction: Transaction<Tables>,
  work: (transaction: Transaction<Tables>) => Promise<T>,
): Promise<T> {
  await transaction.executeQuery(savepoint);
  try {
    const result = await work(transaction);
    await transaction.executeQuery(release);
    return result;
  } catch (error) {
    await undo(transaction, error);
    throw error;
  }
}

async function undo(transaction: Transaction<Tables>, because: unknown): Promise<void> {
  try {
    await transaction.executeQuery(rollback);
    await transaction.executeQuery(release);
  } catch {
    throw new GroupFailed('the transaction is gone', { cause: because });
  }
}

const savepoint = CompiledQuery.raw('savepoint work');
const rollback = CompiledQuery.raw('rollback to work');
const release = CompiledQuery.raw('release work');
