/** Answers that are kept for a request that comes again: stored with what they tell of, for 24 hours. */
import { createHash } from 'node:crypto';
import { type Kysely, sql } from 'kysely';
import { problem } from '#http';
import type { Database, StoredResponseRow, Tables } from '#storage';

const keptMs = 24 * 3_600_000;
/** More than one insert adds, so that the table shrinks to what is young. */
const forgottenAtOnce = 10;

/** Which request it is, and what it asks. */
export interface Question {
  /** Who asks, how and where: the same key of somebody else, or for something else, is another. */
  readonly scope: readonly string[];
  readonly key: string;
  /** The same for the same request alone. */
  readonly fingerprint: string;
}

export interface Answers {
  /**
   * What `work` answers, or what it answered before. It runs in a transaction in which its answer is stored as well; when
   * it throws, nothing is. Throws `idempotency-mismatch` and `idempotency-running`.
   */
  readonly once: <Answer>(question: Question | undefined, work: Work<Answer>, nowMs: number) => Promise<Given<Answer>>;
}

type Work<Answer> = (transaction: Kysely<Tables>) => Promise<Answer>;

export interface Given<Answer> {
  readonly answer: Answer;
  readonly replayed: boolean;
}

export function createAnswers({ kysely, dialect }: Database): Answers {
  /** As many as requests are under way. */
  const running = new Set<string>();

  async function once<Answer>(question: Question | undefined, work: Work<Answer>, nowMs: number) {
    if (question === undefined) return { answer: await kysely.transaction().execute(work), replayed: false };
    const { fingerprint } = question;
    const id = digest([...question.scope, question.key]);
    if (running.has(id)) throw stillRunning();
    running.add(id);
    try {
      return await kysely.transaction().execute(async (transaction): Promise<Given<Answer>> => {
        if (dialect === 'postgres') await claim(transaction, id);
        const known = await find(transaction, id, nowMs);
        if (known !== undefined) return { answer: replay<Answer>(known, fingerprint), replayed: true };
        const answer = await work(transaction);
        await store(transaction, { id, fingerprint, body: JSON.stringify(answer), created_at: iso(nowMs) });
        await forget(transaction, dialect, iso(nowMs - keptMs));
        return { answer, replayed: false };
      });
    } finally {
      running.delete(id);
    }
  }

  return Object.freeze({ once });
}

/** Until the transaction ends; in SQLite the other process waits for the file instead. */
async function claim(transaction: Kysely<Tables>, id: string): Promise<void> {
  const lock = BigInt.asIntN(64, BigInt(`0x${id.slice(0, 16)}`)).toString();
  const { rows } = await sql<{ claimed: boolean }>`select pg_try_advisory_xact_lock(${lock}) as claimed`.execute(
    transaction,
  );
  if (rows[0]?.claimed !== true) throw stillRunning();
}

async function find(transaction: Kysely<Tables>, id: string, nowMs: number): Promise<StoredResponseRow | undefined> {
  return transaction
    .selectFrom('answers')
    .selectAll()
    .where('id', '=', id)
    .where('created_at', '>', iso(nowMs - keptMs))
    .executeTakeFirst();
}

function replay<Answer>(known: StoredResponseRow, fingerprint: string): Answer {
  if (known.fingerprint !== fingerprint) throw problem('idempotency-mismatch');
  return JSON.parse(known.body) as Answer;
}

/** In place of one that is too old to be given. */
async function store(transaction: Kysely<Tables>, { id, ...row }: StoredResponseRow): Promise<void> {
  const insertion = transaction.insertInto('answers').values({ id, ...row });
  await insertion.onConflict((conflict) => conflict.column('id').doUpdateSet(row)).execute();
}

/** What another request is about to forget is left to it, so that nobody waits for anybody. */
async function forget(transaction: Kysely<Tables>, dialect: Database['dialect'], cutoff: string): Promise<void> {
  const old = transaction
    .selectFrom('answers')
    .select('id')
    .where('created_at', '<=', cutoff)
    .orderBy('created_at')
    .limit(forgottenAtOnce);
  const free = dialect === 'postgres' ? old.forUpdate().skipLocked() : old;
  await transaction.deleteFrom('answers').where('id', 'in', free).execute();
}

function stillRunning() {
  return problem('idempotency-running', { headers: { 'Retry-After': '1' } });
}

function iso(ms: number): string {
  return new Date(ms).toISOString();
}

function digest(parts: readonly string[]): string {
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex');
}
