/** Group commit for SQLite: concurrent transactions share a commit, and thereby its fsync. */
import { setImmediate } from 'node:timers/promises';
import { CompiledQuery, type Transaction } from 'kysely';
import type { Transact } from './database.ts';
import type { Tables } from './schema.ts';

/** The maximum size of a group. It bounds how long the first call of a group waits for the last. */
const groupMax = 64;

/** Work that is waiting for its turn. */
interface PendingWork {
  /** Runs the work. Returns a function that settles its promise, to be called after the commit. */
  readonly run: (transaction: Transaction<Tables>, runWork: RunWork) => Promise<Settle>;
  readonly fail: (error: unknown) => void;
}

type Settle = () => void;

/**
 * Runs work in the transaction of its group. If the work throws, rethrows its error, provided that none of its writes
 * remain in the transaction. Otherwise throws GroupFailed.
 */
type RunWork = <T>(
  transaction: Transaction<Tables>,
  work: (transaction: Transaction<Tables>) => Promise<T>,
) => Promise<T>;

/**
 * A commit blocks the event loop until the data is on disk. Calls that arrive in the meantime run one after the other
 * in the next transaction. All of them settle after its commit, even those that throw, because they may have read what
 * another call of the group wrote. If the commit fails, all fail.
 *
 * A call that throws usually has not written anything, and the group continues. If it has, the group is rolled back and
 * runs again with a savepoint around each call, so that only that call is undone.
 *
 * `runTransaction` runs the work of a group in one transaction. `countChanges` returns the number of rows that the
 * connection has ever written, or undefined outside a transaction.
 */
export function createGroupCommit(runTransaction: Transact, countChanges: () => number | undefined): Transact {
  const waiting: PendingWork[] = [];
  let isRunning = false;

  async function runAll(): Promise<void> {
    isRunning = true;
    while (waiting.length > 0) await runGroup(withoutSavepoint);
    isRunning = false;
  }

  async function runGroup(runWork: RunWork): Promise<void> {
    const group: PendingWork[] = [];
    try {
      for (const settle of await commitGroup(group, runWork)) settle();
    } catch (error) {
      if (!(error instanceof GroupFailed)) return fail(group, error);
      if (runWork === inSavepoint) return fail(group, error.cause);
      waiting.unshift(...group);
      await runGroup(inSavepoint);
    }
  }

  /** Rejects the group. If the transaction could not begin, the group is empty and all waiting work is rejected. */
  function fail(group: readonly PendingWork[], error: unknown): void {
    for (const each of group.length > 0 ? group : waiting.splice(0)) each.fail(error);
  }

  /** Runs a group in a transaction. Adds the work to `group` as it begins. */
  function commitGroup(group: PendingWork[], runWork: RunWork): Promise<readonly Settle[]> {
    return runTransaction(async (transaction) => {
      const settles: Settle[] = [];
      for (let next = waiting.shift(); next !== undefined; next = await nextOf(group)) {
        group.push(next);
        settles.push(await next.run(transaction, runWork));
      }
      return settles;
    });
  }

  /** Returns the next waiting work. If there is none, waits one turn of the event loop for more to arrive. */
  async function nextOf(group: readonly PendingWork[]): Promise<PendingWork | undefined> {
    if (group.length >= groupMax) return undefined;
    if (waiting.length === 0) await setImmediate();
    return waiting.shift();
  }

  /** Avoids the cost of a savepoint, within which SQLite copies each page before changing it. */
  async function withoutSavepoint<T>(
    transaction: Transaction<Tables>,
    work: (transaction: Transaction<Tables>) => Promise<T>,
  ): Promise<T> {
    const before = countChanges();
    try {
      return await work(transaction);
    } catch (error) {
      if (countChanges() === before) throw error;
      throw new GroupFailed('the work threw after it had written', { cause: error });
    }
  }

  return function transact(work) {
    return new Promise((resolve, reject) => {
      const run: PendingWork['run'] = (transaction, runWork) =>
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

/**
 * The writes of a single call cannot be undone, because it has no savepoint or SQLite has rolled back the whole
 * transaction, as it does when the disk is full.
 */
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

async function undo(transaction: Transaction<Tables>, cause: unknown): Promise<void> {
  try {
    await transaction.executeQuery(rollback);
    await transaction.executeQuery(release);
  } catch {
    throw new GroupFailed('SQLite has already rolled back the transaction', { cause });
  }
}

const savepoint = CompiledQuery.raw('savepoint work');
const rollback = CompiledQuery.raw('rollback to work');
const release = CompiledQuery.raw('release work');
