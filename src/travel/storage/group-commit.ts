/** Group commit for SQLite: concurrent transactions share a commit, and thereby its fsync. */
import { setImmediate } from 'node:timers/promises';
import { CompiledQuery, type Transaction } from 'kysely';
import type { Transact } from './database.ts';
import type { Tables } from './schema.ts';

/** The maximum size of a group. It bounds how long the first call of a group waits for the last. */
const groupMax = 64;

/** A call of `transact` that has not settled. */
interface Call {
  readonly work: (transaction: Transaction<Tables>) => Promise<unknown>;
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/** Settles the promise of a call. */
type Settle = () => void;

/**
 * A commit blocks the event loop until the data is on disk. Calls that arrive in the meantime run one after the other
 * in the next transaction. All of them settle after its commit, even those that throw, because they may have read what
 * another call of the group wrote. If the commit fails, all fail.
 *
 * A call that throws usually has not written anything, and the group continues. If it has, the group is rolled back and
 * runs again with a savepoint around each call, so that only that call is undone. The first attempt does without,
 * because SQLite copies each page before it changes it within a savepoint.
 *
 * `runTransaction` runs the work of a group in one transaction. `countChanges` returns the number of rows that the
 * connection has ever written, or undefined outside a transaction.
 */
export function createGroupCommit(runTransaction: Transact, countChanges: () => number | undefined): Transact {
  const waiting: Call[] = [];
  let isRunning = false;

  async function runAll(): Promise<void> {
    isRunning = true;
    while (waiting.length > 0) await runGroup();
    isRunning = false;
  }

  async function runGroup(): Promise<void> {
    const group: Call[] = [];
    try {
      await commitGroup(group, runDirectly);
    } catch (error) {
      if (!(error instanceof MustRollBack)) return rejectGroup(group, error);
      waiting.unshift(...group);
      await runGroupAgain();
    }
  }

  async function runGroupAgain(): Promise<void> {
    const group: Call[] = [];
    try {
      await commitGroup(group, runInSavepoint);
    } catch (error) {
      rejectGroup(group, error instanceof MustRollBack ? error.cause : error);
    }
  }

  /** Runs waiting calls in a transaction and settles them after its commit. Adds each to `group` before it runs. */
  async function commitGroup(group: Call[], runCall: typeof runInSavepoint): Promise<void> {
    const settles = await runTransaction(async (transaction) => {
      const settles: Settle[] = [];
      for (let call = waiting.shift(); call !== undefined; call = await nextCall(group.length)) {
        group.push(call);
        settles.push(await runCall(transaction, call));
      }
      return settles;
    });
    for (const settle of settles) settle();
  }

  /** Returns the next waiting call. If there is none, waits one turn of the event loop for more to arrive. */
  async function nextCall(groupSize: number): Promise<Call | undefined> {
    if (groupSize >= groupMax) return undefined;
    if (waiting.length === 0) await setImmediate();
    return waiting.shift();
  }

  /** If the transaction could not begin, the group is empty, and all waiting calls are rejected. */
  function rejectGroup(group: readonly Call[], error: unknown): void {
    for (const { reject } of group.length > 0 ? group : waiting.splice(0)) reject(error);
  }

  async function runDirectly(transaction: Transaction<Tables>, { work, resolve, reject }: Call): Promise<Settle> {
    const changesBefore = countChanges();
    try {
      const result = await work(transaction);
      return () => resolve(result);
    } catch (error) {
      if (countChanges() !== changesBefore) throw new MustRollBack('the call had already written', { cause: error });
      return () => reject(error);
    }
  }

  return function transact<T>(work: (transaction: Transaction<Tables>) => Promise<T>) {
    return new Promise<T>((resolve, reject) => {
      waiting.push({ work, resolve: resolve as Call['resolve'], reject });
      if (!isRunning) void runAll();
    });
  };
}

/** The writes of a call that threw, its `cause`, can be undone only together with the rest of its group. */
class MustRollBack extends Error {}

async function runInSavepoint(transaction: Transaction<Tables>, { work, resolve, reject }: Call): Promise<Settle> {
  await transaction.executeQuery(savepoint);
  try {
    const result = await work(transaction);
    await transaction.executeQuery(release);
    return () => resolve(result);
  } catch (error) {
    await undo(transaction, error);
    return () => reject(error);
  }
}

async function undo(transaction: Transaction<Tables>, cause: unknown): Promise<void> {
  try {
    await transaction.executeQuery(rollback);
    await transaction.executeQuery(release);
  } catch {
    throw new MustRollBack('SQLite has rolled back the whole transaction, as it does when the disk is full', { cause });
  }
}

const savepoint = CompiledQuery.raw('savepoint work');
const rollback = CompiledQuery.raw('rollback to work');
const release = CompiledQuery.raw('release work');
