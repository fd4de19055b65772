/** Creates a booking in one transaction: locks, checks, chooses an offer, and takes a unit for each day. */
import { randomUUIDv7 } from 'node:crypto';
import { type Kysely, sql } from 'kysely';
import { type Fault, type Problem, problem } from '#http';
import type { Database } from '../storage/database.ts';
import type { BookingRow, Tables, TakenUnitRow } from '../storage/schema.ts';
import { createStatement } from '../storage/statement.ts';
import {
  type FreeStay,
  findFreeStays,
  loadOffers,
  prepareAvailability,
  SoldOut,
  startDatesMax,
} from './availability.ts';
import { createReference } from './booking-view.ts';
import { hasExpiredAt, isTakenAt } from './holds.ts';
import { type BookingKind, fixedColumns, type Offer } from './kind.ts';
import { type BookingLimits, checkHoldLimit, checkUnitLimit, lockUser, prepareLimits } from './limits.ts';
import { createRefundSteps, priceOf } from './money.ts';
import { dayMs, holdMs, inThePast, type Stay, stayOf, timeText } from './stay.ts';

export interface BookingRequest {
  readonly user: string;
  /** The ID of the hotel or car. */
  readonly resourceId: string;
  /** Undefined to book the cheapest free offer. */
  readonly offerName: string | undefined;
  /** Undefined to book the next free day. */
  readonly stay: Stay | undefined;
  readonly guests: number;
  /** Creates a pending booking, which expires unless it is confirmed. */
  readonly hold: boolean;
  readonly nowMs: number;
}

/** A kind and its prepared statements. */
export type PreparedKind = BookingKind &
  ReturnType<typeof prepareAvailability> &
  ReturnType<typeof prepareLimits> &
  ReturnType<typeof prepareWrites>;

export function prepareKind(kind: BookingKind): PreparedKind {
  return { ...kind, ...prepareAvailability(kind), ...prepareLimits(kind), ...prepareWrites(kind) };
}

export interface CreateBookingOptions {
  readonly database: Pick<Database, 'dialect'>;
  readonly kind: PreparedKind;
  readonly limits: BookingLimits;
}

/**
 * Creates a booking in the given transaction. Throws SoldOut or one of the problems `bad-body`, `too-many-holds` and
 * `too-many-units`; the transaction must then be rolled back. Makes all checks before the first write, so that
 * rejecting a request is cheap.
 */
export async function createBooking<Row extends BookingRow>(
  { database, kind, limits }: CreateBookingOptions,
  transaction: Kysely<Tables>,
  request: BookingRequest,
): Promise<Row> {
  const { user, hold, nowMs } = request;
  const now = timeText(nowMs);
  // Lock the user before the hotel or car: a different order could deadlock two bookings.
  await lockUser(database, transaction, kind, user);
  if (hold) await checkHoldLimit(transaction, kind, limits, { user, nowMs, now });
  await lockResource(database, transaction, kind, request.resourceId);
  const { offer, stay } = await chooseOffer(transaction, kind, request, now);
  await checkUnitLimit(transaction, kind, limits, { user, stay, now });
  const taken = await releaseExpiredHolds(transaction, kind, { offer, stay }, now);
  const units = firstFreeUnits({ offer, stay }, taken);
  // A hold that has expired by our clock may have been confirmed by another process, whose clock is behind.
  if (units === undefined) throw new SoldOut({ stay: request.stay, largeEnough: [offer], matching: [offer], now });
  const heldUntil = hold ? timeText(nowMs + holdMs) : null;
  // Version 7 sorts by time, so bookings made together are adjacent in each index and a commit writes fewer pages.
  const id = randomUUIDv7();
  const row = await insert(transaction, kind, columnsOf(kind, { id, request, offer, stay, now, heldUntil }));
  const unitRow = { offer_id: offer.id, units: offer.units, booking_id: id, held_until: heldUntil };
  const days = units.map((unit, index) => ({ ...unitRow, day: stay.firstDay + index, unit }));
  await kind.insertUnits(transaction, days);
  return row as unknown as Row;
}

/**
 * Serializes the bookings of a hotel or car, and keeps operators from changing the number of its units meanwhile. SQLite
 * does not need this: it runs one write transaction at a time.
 */
async function lockResource(
  { dialect }: Pick<Database, 'dialect'>,
  transaction: Kysely<Tables>,
  { tables, offer }: BookingKind,
  id: string,
): Promise<void> {
  if (dialect !== 'postgres') return;
  await sql`select 1 from ${sql.table(tables.offers)} where ${offer.columns.resource} = ${id} order by id
    for no key update`.execute(transaction);
}

/** Chooses the cheapest offer that is free for the requested stay or, without one, on the next day that has any. */
async function chooseOffer(
  transaction: Kysely<Tables>,
  kind: PreparedKind,
  request: BookingRequest,
  now: string,
): Promise<FreeStay> {
  const { stay, guests, nowMs } = request;
  // Not checked when the body is parsed: a repeated request gets its stored response even if the stay has begun since.
  if (stay && stay.fromMs < kind.stay.earliestMs(nowMs)) {
    throw badBody({ pointer: `/${kind.stay.fields[0]}`, detail: inThePast });
  }
  const offers = await loadOffers(transaction, kind, [request.resourceId]);
  const matching = matchingOffers(kind, offers, request);
  const search = { offers: matching, stay: stay ?? nextStay(kind, nowMs), now };
  const startDates = stay === undefined ? startDatesMax : 1;
  const { value: chosen } = await findFreeStays(transaction, kind, search, startDates).next();
  if (chosen !== undefined) return chosen;
  const largeEnough = offers.filter((offer) => offer.guests >= guests);
  throw new SoldOut({ stay, largeEnough, matching, now });
}

function nextStay(kind: BookingKind, nowMs: number): Stay {
  const fromMs = kind.stay.nextDay(nowMs) * dayMs;
  return stayOf(fromMs, fromMs + dayMs);
}

/** Returns the offers that match the request, free or not. Throws `bad-body` if there are none. */
function matchingOffers(
  { name: kindName, idField, offer: { nameField, noun, unitNoun } }: BookingKind,
  offers: readonly Offer[],
  { offerName, guests }: BookingRequest,
): readonly Offer[] {
  if (offers.length === 0)
    throw badBody({ pointer: `/${idField}`, detail: `is not the id of a ${kindName} that can be booked` });
  const named = offers.filter(({ name }) => offerName === undefined || name === offerName);
  if (named.length === 0) {
    const known = offers.map(({ name }) => name).join(', ');
    throw badBody({ pointer: `/${nameField}`, detail: `is not a ${noun} of this ${kindName}; known: ${known}` });
  }
  const matching = named.filter((offer) => offer.guests >= guests);
  if (matching.length > 0) return matching;
  const most = Math.max(...named.map((offer) => offer.guests));
  throw badBody({ pointer: '/guests', detail: `must be at most ${most} in one ${unitNoun}` });
}

/** Each `pointer` is a JSON pointer into the request body. */
export function badBody(...errors: readonly Fault[]): Problem {
  return problem('bad-body', { errors });
}

/** Releases the expired holds of the offer during the stay. Returns the units that are still taken, as `<day> <unit>`. */
async function releaseExpiredHolds(
  transaction: Kysely<Tables>,
  statements: WriteStatements,
  freeStay: FreeStay,
  now: string,
): Promise<ReadonlySet<string>> {
  const read = async () => (await statements.readUnits(transaction, { ...freeStay, now })).rows;
  let rows = await read();
  const expired = rows.filter(({ is_taken }) => is_taken === 0);
  for (const id of new Set(expired.map(({ booking_id }) => booking_id))) {
    await releaseHold(transaction, statements, id, now);
  }
  if (expired.length > 0) rows = await read();
  return new Set(rows.map(({ day, unit }) => `${day} ${unit}`));
}

/**
 * Cancels a booking whose hold has expired and frees its units, unless it was confirmed in the meantime. Writes the
 * booking before its days, like all code that writes both: a different order could deadlock.
 */
async function releaseHold(
  transaction: Kysely<Tables>,
  { cancelExpired, deleteUnits }: WriteStatements,
  id: string,
  now: string,
): Promise<void> {
  const { numAffectedRows } = await cancelExpired(transaction, { id, now });
  if (numAffectedRows !== 0n) await deleteUnits(transaction, id);
}

/**
 * Returns the first free unit of each day of the stay. Undefined if some day has none. A unit is not a particular room,
 * so its number may differ from day to day. This way, a stay fits whenever every day has a free unit, in whatever order
 * the bookings were made.
 */
function firstFreeUnits({ offer, stay }: FreeStay, taken: ReadonlySet<string>): readonly number[] | undefined {
  const units: number[] = [];
  for (let day = stay.firstDay; day < stay.endDay; day += 1) {
    let unit = 1;
    while (taken.has(`${day} ${unit}`)) unit += 1;
    if (unit > offer.units) return undefined;
    units.push(unit);
  }
  return units;
}

/** Inserts a booking with a random reference. Retries if that is taken: once in a million, with a million bookings. */
async function insert(transaction: Kysely<Tables>, { insertBooking }: PreparedKind, columns: NewRow): Promise<NewRow> {
  for (let attempt = 0; attempt < 5; attempt += 1) {
    const row = { reference: createReference(), ...columns };
    const { numAffectedRows } = await insertBooking(transaction, row);
    if (numAffectedRows !== 0n) return row;
  }
  throw new Error('could not find an unused booking reference in five attempts');
}

interface NewBooking extends FreeStay {
  readonly id: string;
  readonly request: BookingRequest;
  readonly now: string;
  readonly heldUntil: string | null;
}

/** Returns the values of all columns except the reference. */
function columnsOf(kind: BookingKind, { id, request, offer, stay, now, heldUntil }: NewBooking): NewRow {
  const price = priceOf(offer, stay);
  return {
    id,
    [kind.idField]: offer.resource_id,
    user: request.user,
    status: request.hold ? 'pending' : 'confirmed',
    created_at: now,
    starts_at: kind.stay.print(stay.fromMs),
    ends_at: kind.stay.print(stay.toMs),
    price,
    currency: offer.currency,
    policy: JSON.stringify(createRefundSteps(price, stay.fromMs, request.nowMs)),
    expires_at: heldUntil,
    refund: null,
    version: 1,
    ...kind.booking.valuesOf(offer, request.guests),
  };
}

type WriteStatements = ReturnType<typeof prepareWrites>;

/** Prepares the statements that write bookings and take and release units. */
function prepareWrites(kind: BookingKind) {
  const bookings = sql.table(kind.tables.bookings);
  const days = sql.table(kind.tables.days);
  const columns = [...fixedColumns(kind), 'status', 'version', 'expires_at', 'refund'];
  return {
    /** Inserts a booking unless its reference is already in use. */
    insertBooking: createStatement<NewRow>(
      (slot) => sql`insert into ${bookings} (${sql.join(columns.map((column) => sql.ref(column)))})
        values (${sql.join(columns.map((column) => slot((row) => row[column])))}) on conflict (reference) do nothing`,
    ),
    readUnits: createStatement<FreeStay & { readonly now: string }, UnitInUse>(
      (slot) => sql`select day, unit, booking_id,
          case when ${isTakenAt(slot(({ now }) => now))} then 1 else 0 end as is_taken
        from ${days}
        where offer_id = ${slot(({ offer }) => offer.id)}
          and day >= ${slot(({ stay }) => stay.firstDay)} and day < ${slot(({ stay }) => stay.endDay)}`,
    ),
    insertUnits: createStatement<readonly TakenUnitRow[]>(
      (slot, rows) => {
        const names = unitColumns.map((column) => sql.ref(column));
        const valuesOf = (row: number) => unitColumns.map((column) => slot((units) => units[row]?.[column]));
        const tuples = rows.map((_, row) => sql`(${sql.join(valuesOf(row))})`);
        return sql`insert into ${days} (${sql.join(names)}) values ${sql.join(tuples)}`;
      },
      ({ length }) => length,
    ),
    cancelExpired: createStatement<{ readonly id: string; readonly now: string }>(
      (slot) => sql`update ${bookings}
        set status = 'cancelled', version = version + 1, expires_at = null, refund = 0
        where id = ${slot(({ id }) => id)} and ${hasExpiredAt(slot(({ now }) => now))}`,
    ),
    deleteUnits: createStatement<string>((slot) => sql`delete from ${days} where booking_id = ${slot((id) => id)}`),
    /** Makes the units of a pending booking permanent. Runs when the booking is confirmed. */
    confirmUnits: createStatement<string>(
      (slot) => sql`update ${days} set held_until = null where booking_id = ${slot((id) => id)}`,
    ),
  };
}

type NewRow = Readonly<Record<string, string | number | null>>;

const unitColumns = ['offer_id', 'day', 'unit', 'units', 'booking_id', 'held_until'] as const;

interface UnitInUse extends Pick<TakenUnitRow, 'day' | 'unit' | 'booking_id'> {
  /** 0 if the unit belongs to an expired hold. */
  readonly is_taken: number;
}
