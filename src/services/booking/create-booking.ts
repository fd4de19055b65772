/** Chooses what is free, takes it and writes the booking, in one transaction; or says what else there is. */
import { randomUUIDv7 } from 'node:crypto';
import { type Kysely, sql } from 'kysely';
import { type Fault, type Problem, problem } from '#http';
import { type BookingRow, createStatement, type Database, type Tables } from '#storage';
import {
  type FreeStay,
  findFreeOffer,
  findUnits,
  freeStays,
  offersOf,
  takenIn,
  type UnitStatements,
  unitsLeft,
} from './availability.ts';
import { createReference } from './booking-view.ts';
import { createRefundSteps } from './cancellation.ts';
import { type BookingKind, fixedColumns, type Offer } from './kind.ts';
import { type BookingLimits, type LimitStatements, lockUser, requireHold, requireUnit } from './limits.ts';
import { moneyOf } from './money.ts';
import { dayMs, holdMs, inThePast, lengthOf, type Stay, shiftStay, stayOf, timeText } from './stay.ts';

export interface BookingRequest {
  readonly user: string;
  /** The hotel or the car. */
  readonly resourceId: string;
  /** Undefined: the cheapest that is free. */
  readonly offerName: string | undefined;
  /** Undefined: the next free day. */
  readonly stay: Stay | undefined;
  readonly guests: number;
  /** Whether the booking is pending at first, and lapses unless it is confirmed. */
  readonly hold: boolean;
  readonly nowMs: number;
}

/** A kind with its statements. */
export type PreparedKind = BookingKind & UnitStatements & LimitStatements & ReturnType<typeof prepareInsert>;

/** The statement that writes a booking unless there is one with its reference. */
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
 * In a transaction, which must be rolled back when it throws: `bad-body`, `too-many-holds`, `too-many-units`, or SoldOut.
 * All checks come before it writes, since a refusal that has written nothing costs no rollback.
 */
export async function createBooking<Row extends BookingRow>(
  { database, kind, limits }: CreateBookingOptions,
  transaction: Kysely<Tables>,
  request: BookingRequest,
): Promise<Row> {
  const { user, hold, nowMs } = request;
  const now = timeText(nowMs);
  // The user before the hotel or car: otherwise two bookings could deadlock.
  await lockUser(database, transaction, kind, user);
  if (hold) await requireHold(transaction, kind, limits, { user, nowMs, now });
  if (database.dialect === 'postgres') await lock(transaction, kind, request.resourceId);
  const { offer, stay } = await choose(transaction, kind, request, now);
  await requireUnit(transaction, kind, limits, { user, stay, now });
  const units = await findUnits(transaction, kind, { offer, stay }, now);
  // A hold that has lapsed by our clock may have been confirmed by that of another process.
  if (units === undefined) throw new SoldOut({ request, offers: [offer], fitting: [offer] });
  const heldUntil = hold ? timeText(nowMs + holdMs) : null;
  // In the order of time, so that bookings made together lie side by side in each index, and a commit writes fewer pages.
  const id = randomUUIDv7();
  const row = await insert(transaction, kind, columnsOf(kind, { id, request, offer, stay, now, heldUntil }));
  const taken = { offer_id: offer.id, units: offer.units, booking_id: id, held_until: heldUntil };
  const days = units.map((unit, index) => ({ ...taken, day: stay.firstDay + index, unit }));
  await kind.insertUnits(transaction, days);
  return row as unknown as Row;
}

/** One booking of a hotel or car at a time. In SQLite the transaction itself is the lock. */
async function lock(transaction: Kysely<Tables>, { tables }: BookingKind, id: string): Promise<void> {
  await sql`select 1 from ${sql.table(tables.resources)} where id = ${id} for no key update`.execute(transaction);
}

async function choose(
  kysely: Kysely<Tables>,
  kind: PreparedKind,
  request: BookingRequest,
  now: string,
): Promise<FreeStay> {
  const { stay, nowMs } = request;
  // Checked here and not with the body: a repeated request gets its stored response, however late it comes.
  if (stay && stay.fromMs < kind.stay.earliestMs(nowMs)) {
    throw badBody({ pointer: `/${kind.stay.fields[0]}`, detail: inThePast });
  }
  const offers = await offersOf(kysely, kind, [request.resourceId]);
  const fitting = fittingOffers(kind, offers, request);
  const chosen = stay
    ? await findFreeOffer(kysely, kind, { offers: fitting, stay, now })
    : (await freeStays(kysely, kind, { offers: fitting, stay: nextStay(kind, nowMs), now }).next()).value;
  if (chosen === undefined) throw new SoldOut({ request, offers, fitting });
  return chosen;
}

function nextStay(kind: BookingKind, nowMs: number): Stay {
  const fromMs = kind.stay.nextDay(nowMs) * dayMs;
  return stayOf(fromMs, fromMs + dayMs);
}

/** The offers that the request may mean. */
function fittingOffers(
  { name: kindName, idField, offer: { nameField, noun, unitNoun } }: BookingKind,
  offers: readonly Offer[],
  { offerName, guests }: BookingRequest,
): readonly Offer[] {
  if (offers.length === 0) throw badBody({ pointer: `/${idField}`, detail: `is the id of no ${kindName}` });
  const named = offers.filter(({ name }) => offerName === undefined || name === offerName);
  if (named.length === 0) {
    const known = offers.map(({ name }) => name).join(', ');
    throw badBody({ pointer: `/${nameField}`, detail: `is no ${noun} of this ${kindName}; known: ${known}` });
  }
  const fitting = named.filter((offer) => offer.guests >= guests);
  if (fitting.length > 0) return fitting;
  const most = Math.max(...named.map((offer) => offer.guests));
  throw badBody({ pointer: '/guests', detail: `must be at most ${most} in one ${unitNoun}` });
}

/** Each `pointer` is a JSON pointer into the request body. */
export function badBody(...errors: readonly Fault[]): Problem {
  return problem('bad-body', { errors });
}

/** Draws references until one is new; among a million bookings, one in a million needs a second attempt. */
async function insert(transaction: Kysely<Tables>, { insertBooking }: PreparedKind, columns: NewRow): Promise<NewRow> {
  for (let attempt = 0; attempt < 5; attempt += 1) {
    const row = { reference: createReference(), ...columns };
    const { numAffectedRows } = await insertBooking(transaction, row);
    if (numAffectedRows !== 0n) return row;
  }
  throw new Error('no new reference was found for a booking');
}

interface NewBooking extends FreeStay {
  readonly id: string;
  readonly request: BookingRequest;
  readonly now: string;
  readonly heldUntil: string | null;
}

/** All columns but the reference. */
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
  /** The offers that the request may mean. */
  readonly fitting: readonly Offer[];
}

/** Ends the transaction; the alternatives are searched after it, when no other request waits for it. */
export class SoldOut extends Error {
  override readonly name = 'SoldOut';
  readonly details: SoldOutDetails;

  constructor(details: SoldOutDetails) {
    super('sold out');
    this.details = details;
  }
}

export const alternativesMax = 5;

/** The problem `sold-out`, with other offers for the same days, then with later days. */
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

/** Without a stay all days of a year were tried. */
function soldOutDetail(
  { name, stay: { print }, alternative }: BookingKind,
  { stay }: BookingRequest,
  found: readonly FreeStay[],
): string {
  if (stay === undefined) return `Nothing is left of this ${name} within a year.`;
  const sentence = `Nothing is left of this ${name} for these days`;
  if (found.length === 0) return `${sentence}, nor as long within a year.`;
  const others = found.map(({ offer, stay: { fromMs, toMs } }) =>
    [...Object.values(alternative.valuesOf(offer)), `${print(fromMs)} to ${print(toMs)}`].join(' '),
  );
  return `${sentence}. Free instead: ${others.join('; ')}.`;
}

async function findAlternatives(
  kysely: Kysely<Tables>,
  kind: PreparedKind,
  { request: { stay, guests, nowMs }, offers, fitting }: SoldOutDetails,
): Promise<readonly FreeStay[]> {
  if (stay === undefined) return [];
  const largeEnough = offers.filter((offer) => offer.guests >= guests);
  const now = timeText(nowMs);
  const taken = await takenIn(kysely, kind, { ...stay, offers: largeEnough, now });
  const found: FreeStay[] = largeEnough
    .filter((offer) => unitsLeft(offer, stay, taken) > 0)
    .slice(0, alternativesMax)
    .map((offer) => ({ offer, stay }));
  if (found.length === alternativesMax) return found;
  for await (const later of freeStays(kysely, kind, { offers: fitting, stay: shiftStay(stay, 1), now })) {
    found.push(later);
    if (found.length === alternativesMax) break;
  }
  return found;
}
