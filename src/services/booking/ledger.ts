/** The bookings of a trade: made, changed and read, each in one transaction or one read. */
import { type SelectQueryBuilder, sql } from 'kysely';
import type { BookingRow, BookingStatus, Database } from '#storage';
import { createAnswers, type Given, type Question } from './answers.ts';
import { book } from './book.ts';
import { changeStatus } from './change-status.ts';
import type { Order } from './choose.ts';
import { bookingsAt } from './rows.ts';
import { SoldOut, soldOutProblem } from './sold-out.ts';
import type { Trade } from './trade.ts';

export interface LedgerOptions {
  readonly database: Database;
  readonly trade: Trade;
  /** Milliseconds since 1970. */
  readonly clock: () => number;
}

/** Rejects with StorageUnavailable while the database is away. */
export interface Ledger<Row extends BookingRow> {
  /**
   * Makes a booking, and `answer` of it, or finds the answer that the same question had. Throws the problems `bad-body`,
   * `sold-out`, `idempotency-mismatch` and `idempotency-running`, and then nothing is booked.
   */
  readonly book: <Answer>(
    order: Omit<Order, 'nowMs'>,
    question: Question | undefined,
    answer: (row: Row) => Answer,
  ) => Promise<Given<Answer>>;
  /** See changeStatus. */
  readonly change: (id: string, status: BookingStatus, requireCurrent: (row: Row) => void) => Promise<Row>;
  /** The bookings of a user as they are now. */
  readonly ownedBy: (user: string) => SelectQueryBuilder<{ bookings: Row }, 'bookings', Row>;
  /** A hot read: it is prepared. */
  readonly firstOwned: (user: string, id: string) => Row | undefined | Promise<Row | undefined>;
}

export function createLedger<Row extends BookingRow>({ database, trade, clock }: LedgerOptions): Ledger<Row> {
  const { kysely } = database;
  const answers = createAnswers(database);
  const ownedAt = (now: string, user: string) => bookingsAt<Row>(kysely, trade, now).where(sql.ref('user'), '=', user);
  // Somebody else's booking is not found, so that ids tell nothing.
  const first = database.prepareFirst<Row>(ownedAt('', '').where(sql.ref('id'), '=', ''));
  const now = createNow(clock);

  return Object.freeze({
    async book<Answer>(wish: Omit<Order, 'nowMs'>, question: Question | undefined, answer: (row: Row) => Answer) {
      const order = { ...wish, nowMs: clock() };
      try {
        return await answers.once(
          question,
          async (transaction) => answer(await book<Row>(database, transaction, trade, order)),
          order.nowMs,
        );
      } catch (error) {
        throw error instanceof SoldOut ? await soldOutProblem(kysely, trade, error.refusal) : error;
      }
    },
    change(id, status, requireCurrent) {
      const wanted = { id, status, requireCurrent, nowMs: clock() };
      return kysely.transaction().execute((transaction) => changeStatus(database, transaction, trade, wanted));
    },
    ownedBy: (user) => ownedAt(now(), user),
    firstOwned: (user, id) => first(now(), user, id),
  } satisfies Ledger<Row>);
}

/** RFC 3339, UTC; written anew only once the clock has moved on: many requests share a millisecond. */
function createNow(clock: () => number): () => string {
  let [ms, text] = [Number.NaN, ''];
  return function now() {
    const current = clock();
    if (current !== ms) {
      ms = current;
      text = new Date(ms).toISOString();
    }
    return text;
  };
}
