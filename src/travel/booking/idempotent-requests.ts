/** Idempotency keys: stores each response for 24 hours, in the same transaction as its effects, and replays it. */
import { type Kysely, sql } from 'kysely';
import { problem } from '#http';
import { idempotencyMismatch, requestDigest } from '#rest';
import type { Database } from '../storage/database.ts';
import type { StoredResponseRow, Tables } from '../storage/schema.ts';
import { createStatement } from '../storage/statement.ts';
import { timeText } from './stay.ts';

const retentionMs = 24 * 3_600_000;
/** Expired rows that each request deletes. A request adds one row, so the backlog shrinks. */
const deletedPerRequest = 10;

/** Identifies a request, so that a repeated one is recognised. */
export interface IdempotentRequest {
  /** User, method and path. The same key in another scope identifies another request. */
  readonly scope: readonly string[];
  readonly key: string;
  /** Fingerprint of the body. */
  readonly fingerprint: string;
}

interface RunOptions {
  readonly nowMs: number;
  /** What `work` locks first (see `Transact`). */
  readonly locks: readonly string[];
}

export interface Outcome<Response> {
  readonly response: Response;
  readonly isReplayed: boolean;
}

/**
 * Creates a function that runs `work` in a transaction that also stores its response, or returns the response that was
 * stored earlier. It stores nothing when `work` throws. Without a request, it runs `work` and stores nothing. It throws
 * `idempotency-mismatch` and `idempotency-running`.
 */
export function createRunRequestOnce({ transact, dialect }: Database) {
  const { readStored, writeStored, deleteOld } = prepareStored(dialect);
  const running = new Set<string>();

  return async function runOnce<Response>(
    request: IdempotentRequest | undefined,
    work: (transaction: Kysely<Tables>) => Promise<Response>,
    { nowMs, locks }: RunOptions,
  ): Promise<Outcome<Response>> {
    if (request === undefined) return { response: await transact(work, locks), isReplayed: false };
    const { scope, key, fingerprint } = request;
    const id = requestDigest([...scope, key]);
    if (running.has(id)) throw stillRunning();
    running.add(id);
    try {
      return await transact(async (transaction) => {
        if (dialect === 'postgres') await lock(transaction, id);
        const cutoff = timeText(nowMs - retentionMs);
        const [stored] = (await readStored(transaction, { id, cutoff })).rows;
        if (stored !== undefined) return { response: replay<Response>(stored, fingerprint), isReplayed: true };
        const response = await work(transaction);
        await writeStored(transaction, {
          id,
          fingerprint,
          body: JSON.stringify(response),
          created_at: timeText(nowMs),
        });
        await deleteOld(transaction, cutoff);
        return { response, isReplayed: false };
      }, locks);
    } finally {
      running.delete(id);
    }
  };
}

/**
 * Reserves the request until the transaction ends. SQLite does not need this, because another process waits for the
 * file's write lock.
 */
async function lock(transaction: Kysely<Tables>, id: string): Promise<void> {
  const number = BigInt.asIntN(64, BigInt(`0x${id.slice(0, 16)}`)).toString();
  const { rows } = await sql<{ locked: boolean }>`select pg_try_advisory_xact_lock(${number}) as locked`.execute(
    transaction,
  );
  if (rows[0]?.locked !== true) throw stillRunning();
}

type StoredResponse = Pick<StoredResponseRow, 'fingerprint' | 'body' | 'created_at'>;

function prepareStored(dialect: Database['dialect']) {
  return {
    readStored: createStatement<{ readonly id: string; readonly cutoff: string }, StoredResponse>(
      (slot) => sql`select fingerprint, body, created_at from answers
        where id = ${slot(({ id }) => id)} and created_at > ${slot(({ cutoff }) => cutoff)}`,
    ),
    /** Overwrites an expired response with the same key. */
    writeStored: createStatement<StoredResponseRow>(
      (slot) => sql`insert into answers (id, fingerprint, body, created_at)
        values (${slot(({ id }) => id)}, ${slot(({ fingerprint }) => fingerprint)}, ${slot(({ body }) => body)},
          ${slot(({ created_at }) => created_at)})
        on conflict (id) do update
        set fingerprint = excluded.fingerprint, body = excluded.body, created_at = excluded.created_at`,
    ),
    /** Skips rows that another request is deleting, so that requests do not wait for each other. */
    deleteOld: createStatement<string>(
      // The limit is a literal because SQLite re-prepares the statement for each value of a LIMIT parameter.
      (slot) => sql`delete from answers where id in (
        select id from answers where created_at <= ${slot((cutoff) => cutoff)}
        order by created_at limit ${sql.lit(deletedPerRequest)} ${dialect === 'postgres' ? sql`for update skip locked` : sql``}
      )`,
    ),
  };
}

function replay<Response>(stored: StoredResponse, fingerprint: string): Response {
  if (stored.fingerprint !== fingerprint) throw idempotencyMismatch(stored.created_at);
  return JSON.parse(stored.body) as Response;
}

function stillRunning() {
  return problem('idempotency-running');
}
