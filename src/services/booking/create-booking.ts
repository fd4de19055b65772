/** Creates a booking in one transaction, or reports what can be booked instead when everything is taken. */
import { randomUUIDv7 } from 'node:crypto';
import { type Kysely, sql } from 'kysely';
import { type Fault, type Problem, problem } from '#http';
import { type BookingRow, createStatement, type Database, type Tables } from '#storage';
import {
  type FreeStay,
  findFreeOffer,
  findFreeStays,
  findUnits,
  loadOffers,
  readTakenUnits,
  type UnitStatements,
  unitsLeft,
} from './availability.ts';
import { createReference } from './booking-view.ts';
import { type BookingKind, fixedColumns, type Offer } from './kind.ts';
import { type BookingLimits, checkHoldLimit, checkUnitLimit, type LimitStatements, lockUser } from './limits.ts';
import { createRefundSteps, moneyOf } from './money.ts';
import { dayMs, holdMs, inThePast, lengthOf, type Stay, shiftStay, stayOf, timeText } from './stay.ts';

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
export type PreparedKind = BookingKind & UnitStatements & LimitStatements & ReturnType<typeof prepareInsert>;

/** Prepares the statement that inserts a booking unless its reference is already in use. */
export function prepareInsert(kind: BookingKind) {
  const table = sql.table(kind.tables.bookings);
  const columns = [...fixedColumns(kind), 'status', 'version', 'expires_at', 'refund'];
  return {
    insertBooking: createStatement<NewRow>(
      (slot) => sql`insert into ${table} (${sql.join(columns.map((column) => sql.ref(column)))})
        values (${sql.join(columns.map((column) => slot((row) => row[column])))}) on conflict (reference) do nothing`,
    ),
  };
}

type NewRow = Readonly<Record<string, string | number | null>>;

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
  if (database.dialect === 'postgres') await lock(transaction, kind, request.resourceId);
  const { offer, stay } = await chooseOffer(transaction, kind, request, now);
  await checkUnitLimit(transaction, kind, limits, { user, stay, now });
  const units = await findUnits(transaction, kind, { offer, stay }, now);
  // A hold that has expired by our clock may have been confirmed by another process, whose clock is behind.
  if (units === undefined) throw new SoldOut({ request, offers: [offer], matching: [offer] });
  const heldUntil = hold ? timeText(nowMs + holdMs) : null;
  // Version 7 sorts by time, so bookings made together are adjacent in each index and a commit writes fewer pages.
  const id = randomUUIDv7();
  const row = await insert(transaction, kind, columnsOf(kind, { id, request, offer, stay, now, heldUntil }));
  const taken = { offer_id: offer.id, units: offer.units, booking_id: id, held_until: heldUntil };
  const days = units.map((unit, index) => ({ ...taken, day: stay.firstDay + index, unit }));
  await kind.insertUnits(transaction, days);
  return row as unknown as Row;
}

/**
 * Serializes the bookings of a hotel or car, and keeps operators from changing the number of its units meanwhile. SQLite
 * does not need this: it runs one write transaction at a time.
 */
async function lock(transaction: Kysely<Tables>, { tables, offer }: BookingKind, id: string): Promise<void> {
  await sql`select 1 from ${sql.table(tables.offers)} where ${offer.columns.resource} = ${id} order by id
    for no key update`.execute(transaction);
}

async function chooseOffer(
  kysely: Kysely<Tables>,
  kind: PreparedKind,
  request: BookingRequest,
  now: string,
): Promise<FreeStay> {
  const { stay, nowMs } = request;
  // Not checked when the body is parsed: a repeated request gets its stored response even if the stay has begun since.
  if (stay && stay.fromMs < kind.stay.earliestMs(nowMs)) {
    throw badBody({ pointer: `/${kind.stay.fields[0]}`, detail: inThePast });
  }
  const offers = await loadOffers(kysely, kind, [request.resourceId]);
  const matching = matchingOffers(kind, offers, request);
  const chosen = stay
    ? await findFreeOffer(kysely, kind, { offers: matching, stay, now })
    : (await findFreeStays(kysely, kind, { offers: matching, stay: nextStay(kind, nowMs), now }).next()).value;
  if (chosen === undefined) throw new SoldOut({ request, offers, matching });
  return chosen;
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
  if (offers.length === 0) throw badBody({ pointer: `/${idField}`, detail: `is not the id of a ${kindName}` });
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
  const price = offer.price * lengthOf(stay);
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

interface SoldOutDetails {
  readonly request: BookingRequest;
  /** All offers of the hotel or car. */
  readonly offers: readonly Offer[];
  /** The offers that match the request. */
  readonly matching: readonly Offer[];
}

/** Aborts the transaction. Alternatives are searched afterwards, so that other requests do not wait for the search. */
export class SoldOut extends Error {
  override readonly name = 'SoldOut';
  readonly details: SoldOutDetails;

  constructor(details: SoldOutDetails) {
    super('sold out');
    this.details = details;
  }
}

export const alternativesMax = 5;

/** Creates the `sold-out` problem. Its alternatives are other offers for the same days, then later days. */
export async function soldOutProblem(
  kysely: Kysely<Tables>,
  kind: PreparedKind,
  { details }: SoldOut,
): Promise<Problem> {
  const [from, to] = kind.stay.fields;
  const found = await findAlternatives(kysely, kind, details);
  const alternatives = found.map(({ offer, stay }) => ({
    ...kind.alternative.valuesOf(offer),
    [from]: kind.stay.print(stay.fromMs),
    [to]: kind.stay.print(stay.toMs),
    price: moneyOf(offer.price * lengthOf(stay), offer.currency),
  }));
  return problem('sold-out', { detail: soldOutDetail(kind, details.request, found), extension: { alternatives } });
}

function soldOutDetail(
  { name, stay: { print }, alternative }: BookingKind,
  { stay }: BookingRequest,
  found: readonly FreeStay[],
): string {
  // Without a stay, every day of the coming year has been tried.
  if (stay === undefined) return `This ${name} is fully booked for a year.`;
  const sentence = `This ${name} is fully booked for these days`;
  if (found.length === 0) return `${sentence}, and for any stay of this length within a year.`;
  const others = found.map(({ offer, stay: { fromMs, toMs } }) =>
    [...Object.values(alternative.valuesOf(offer)), `${print(fromMs)} to ${print(toMs)}`].join(' '),
  );
  return `${sentence}. Available instead: ${others.join('; ')}.`;
}

async function findAlternatives(
  kysely: Kysely<Tables>,
  kind: PreparedKind,
  { request: { stay, guests, nowMs }, offers, matching }: SoldOutDetails,
): Promise<readonly FreeStay[]> {
  if (stay === undefined) return [];
  const largeEnough = offers.filter((offer) => offer.guests >= guests);
  const now = timeText(nowMs);
  const taken = await readTakenUnits(kysely, kind, { ...stay, offers: largeEnough, now });
  const found: FreeStay[] = largeEnough
    .filter((offer) => unitsLeft(offer, stay, taken) > 0)
    .slice(0, alternativesMax)
    .map((offer) => ({ offer, stay }));
  if (found.length === alternativesMax) return found;
  for await (const later of findFreeStays(kysely, kind, { offers: matching, stay: shiftStay(stay, 1), now })) {
    found.push(later);
    if (found.length === alternativesMax) break;
  }
  return found;
}
