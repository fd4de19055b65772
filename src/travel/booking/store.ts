/** The booking store: creates, changes and reads the bookings of one kind. */
import { type Kysely, type SelectQueryBuilder, sql } from 'kysely';
import { type Problem, problem } from '#http';
import type { ListQuery } from '#query';
import type { Database } from '../storage/database.ts';
import type { BookingRow, BookingStatus, Tables } from '../storage/schema.ts';
import { createPageReader, type Page } from '../storage/select-page.ts';
import type { Slot } from '../storage/statement.ts';
import { SoldOut, soldOutProblem } from './availability.ts';
import { type BookingRequest, createBooking, type PreparedKind, prepareKind } from './create-booking.ts';
import { hasExpiredAt } from './holds.ts';
import { createRunRequestOnce, type IdempotentRequest, type Outcome } from './idempotent-requests.ts';
import { type BookingKind, fixedColumns } from './kind.ts';
import type { BookingLimits } from './limits.ts';
import { type RefundStep, refundAt } from './money.ts';
import { timeText } from './stay.ts';

export interface BookingStoreOptions {
  readonly database: Database;
  readonly kind: BookingKind;
  /** Returns milliseconds since 1970. */
  readonly clock: () => number;
  readonly limits: BookingLimits;
}

/** All methods fail with StorageUnavailable while the database is unavailable. */
export interface BookingStore<Row extends BookingRow> {
  /**
   * Creates a booking and returns the result of `toResponse`, or the stored response if this request was carried out
   * earlier. Throws one of the problems `bad-body`, `sold-out`, `too-many-holds`, `too-many-units`,
   * `idempotency-mismatch` and `idempotency-running`, and then creates nothing.
   */
  readonly create: <Response>(
    request: Omit<BookingRequest, 'nowMs'>,
    idempotent: IdempotentRequest | undefined,
    toResponse: (row: Row) => Response,
  ) => Promise<Outcome<Response>>;
  /**
   * Changes the status of a booking and returns the result of `toResponse`, or the stored response if this request was
   * carried out earlier. Throws `forbidden-transition`, `idempotency-mismatch` and `idempotency-running`.
   */
  readonly change: <Response>(
    change: StatusChange<Row>,
    idempotent: IdempotentRequest | undefined,
    toResponse: (row: Row) => Response,
  ) => Promise<Outcome<Response>>;
  readonly readPage: (user: string, list: ListQuery<Row>) => Promise<Page<Row>>;
  /** Reads a booking if the user owns it. */
  readonly readOwned: (user: string, id: string) => Row | undefined | Promise<Row | undefined>;
}

export function createBookingStore<Row extends BookingRow>(options: BookingStoreOptions): BookingStore<Row> {
  const { database, clock, limits } = options;
  const { kysely } = database;
  const kind = prepareKind(options.kind);
  const runOnce = createRunRequestOnce(database);
  const ownedAt = (now: string, user: string) => bookingsAt<Row>(kysely, kind, now).where(sql.ref('user'), '=', user);
  const readPage = createPageReader(database, (slot: Slot<Owned>) => {
    const [at, user] = [slot(({ now }) => now), slot((owned) => owned.user)];
    return ownedAt(at, user);
  });
  const readOwned = database.prepareFirst<Row>(ownedAt('', '').where(sql.ref('id'), '=', ''));
  const now = createTextClock(clock);

  return Object.freeze({
    async create<Response>(
      request: Omit<BookingRequest, 'nowMs'>,
      idempotent: IdempotentRequest | undefined,
      toResponse: (row: Row) => Response,
    ) {
      const nowMs = clock();
      const work = async (transaction: Kysely<Tables>) =>
        toResponse(await createBooking<Row>({ database, kind, limits }, transaction, { ...request, nowMs }));
      try {
        const locks = [`${kind.name} user ${request.user}`, `${kind.name} ${request.resourceId}`];
        return await runOnce(idempotent, work, { nowMs, locks });
      } catch (error) {
        throw error instanceof SoldOut ? await soldOutProblem(kysely, kind, error) : error;
      }
    },
    change(change, idempotent, toResponse) {
      const nowMs = clock();
      const work = async (transaction: Kysely<Tables>) =>
        toResponse(await changeStatus(database, transaction, kind, change, nowMs));
      return runOnce(idempotent, work, { nowMs, locks: [] });
    },
    readPage: (user, list) => readPage({ now: now(), user }, list),
    readOwned: (user, id) => readOwned(now(), user, id),
  } satisfies BookingStore<Row>);
}

/** Selects the bookings of a user, as they are at a point in time. */
interface Owned {
  /** RFC 3339, UTC. */
  readonly now: string;
  readonly user: string;
}

/** Creates a clock that returns text. It caches the last one, because many requests arrive in the same millisecond. */
function createTextClock(clock: () => number): () => string {
  let [ms, text] = [Number.NaN, ''];
  return function now() {
    const current = clock();
    if (current !== ms) {
      ms = current;
      text = timeText(ms);
    }
    return text;
  };
}

/**
 * Selects all bookings as they are at `now` (RFC 3339, UTC), the first parameter of the SQL. A pending booking that has
 * expired shows as cancelled even if its row has not been updated yet. Its expiry counts as a new version: older ETags
 * stop matching, and updating the row later changes nothing that clients can see.
 */
function bookingsAt<Row extends BookingRow>(kysely: Kysely<Tables>, kind: BookingKind, now: string) {
  const columns = fixedColumns(kind).map((column) => sql.ref(column));
  const rows = sql<Row>`(
    select ${sql.join(columns)},
      case when expired = 1 then 'cancelled' else status end as status,
      version + expired as version,
      case when expired = 0 then expires_at end as expires_at,
      case when expired = 1 then 0 else refund end as refund
    from (
      select *, case when ${hasExpiredAt(now)} then 1 else 0 end as expired
      from ${sql.table(kind.tables.bookings)}
    ) as written
  )`;
  const query = kysely.selectFrom(rows.as('bookings')).selectAll();
  return query as unknown as SelectQueryBuilder<{ bookings: Row }, 'bookings', Row>;
}

export interface StatusChange<Row extends BookingRow> {
  readonly id: string;
  /** If the booking already has this status, nothing changes. */
  readonly status: Exclude<BookingStatus, 'pending'>;
  /** Must throw unless the client knows the current version. */
  readonly requireCurrent: (row: Row) => void;
}

async function changeStatus<Row extends BookingRow>(
  { dialect }: Pick<Database, 'dialect'>,
  transaction: Kysely<Tables>,
  kind: PreparedKind,
  { id, status, requireCurrent }: StatusChange<Row>,
  nowMs: number,
): Promise<Row> {
  const now = timeText(nowMs);
  if (dialect === 'postgres') await lock(transaction, kind, id);
  const find = () => bookingsAt<Row>(transaction, kind, now).where(sql.ref('id'), '=', id).executeTakeFirstOrThrow();
  const before = await find();
  if (before.status === status) return before;
  requireCurrent(before);
  if (before.status === 'cancelled') throw cannotReopen();
  await writeStatus(transaction, kind, before, status, nowMs);
  return find();
}

async function lock(transaction: Kysely<Tables>, { tables }: BookingKind, id: string): Promise<void> {
  await sql`select 1 from ${sql.table(tables.bookings)} where id = ${id} for update`.execute(transaction);
}

/** Writes the booking before its days, like all code that writes both: a different order could deadlock. */
async function writeStatus(
  transaction: Kysely<Tables>,
  kind: PreparedKind,
  { id, status: from, policy }: BookingRow,
  status: BookingStatus,
  nowMs: number,
): Promise<void> {
  // A pending booking has not been paid for, so there is nothing to refund.
  const refundable = from === 'confirmed' ? refundAt(JSON.parse(policy) as readonly RefundStep[], nowMs) : 0;
  const refund = status === 'cancelled' ? refundable : null;
  await sql`update ${sql.table(kind.tables.bookings)} set status = ${status}, version = version + 1, expires_at = null,
    refund = ${refund} where id = ${id}`.execute(transaction);
  await (status === 'cancelled' ? kind.deleteUnits : kind.confirmUnits)(transaction, id);
}

function cannotReopen(): Problem {
  return problem('forbidden-transition', { detail: 'The booking is cancelled and can no longer change.' });
}
