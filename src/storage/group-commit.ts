/** Transactions of SQLite that share a commit, and so its fsync: what arrives together becomes durable together. */
import { setImmediate } from 'node:timers/promises';
import { CompiledQuery, type Kysely, type Transaction } from 'kysely';
import type { Transact } from './database.ts';
import type { Tables } from './schema.ts';

/** The first of a group waits for the last one. */
const groupMax = 64;

/** A work that waits for its turn. `run` does it and returns what settles its promise, to be called after the commit. */
interface Waiting {
  readonly run: (transaction: Transaction<Tables>) => Promise<Settle>;
  readonly fail: (error: unknown) => void;
}

type Settle = () => void;

const savepoint = CompiledQuery.raw('savepoint work');
const rollback = CompiledQuery.raw('rollback to work');
const release = CompiledQuery.raw('release work');

/**
 * The commit blocks the event loop until the disk has the data, so that meanwhile others arrive. They run one after the
 * other in the next transaction, each in a savepoint: one that throws undoes its own writes alone. None is answered before
 * the commit, a refusal neither, since it may rest on what another of the group wrote; when the commit fails, all fail.
 */
export function createGroupCommit(kysely: Kysely<Tables>): Transact {
  const waiting: Waiting[] = [];
  let isRunning = false;

  async function runAll(): Promise<void> {
    isRunning = true;
    while (waiting.length > 0) await runGroup();
    isRunning = false;
  }

  async function runGroup(): Promise<void> {
    const group: Waiting[] = [];
    const settles: Settle[] = [];
    try {
      await kysely.transaction().execute(async (transaction) => {
        for (let next = waiting.shift(); next !== undefined; next = await nextOf(group)) {
          group.push(next);
          settles.push(await next.run(transaction));
        }
      });
    } catch (error) {
      // The transaction did not begin: then those that wait fail with it, as each would alone.
      for (const { fail } of group.length > 0 ? group : waiting.splice(0)) fail(error);
      return;
    }
    for (const settle of settles) settle();
  }

  /** One that waits, or that has arrived within a turn of the event loop. */
  async function nextOf(group: readonly Waiting[]): Promise<Waiting | undefined> {
    if (group.length >= groupMax) return undefined;
    if (waiting.length === 0) await setImmediate();
    return waiting.shift();
  }

  return function transact(work) {
    return new Promise((resolve, reject) => {
      const run = (transaction: Transaction<Tables>) =>
        inSavepoint(transaction, work).then(
          (result) => () => resolve(result),
          (error) => {
            if (error instanceof GroupFailed) throw error.cause;
            return () => reject(error);
          },
        );
      waiting.push({ run, fail: reject });
      if (!isRunning) void runAll();
    });
  };
}

/** SQLite has rolled back the whole transaction by itself, as when the disk is full. */
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
