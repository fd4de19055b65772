/** Chooses what is free, takes it and writes the booking, in one transaction; or says what else there is. */
import { randomUUIDv7 } from 'node:crypto';
import { type Kysely, sql } from 'kysely';
import { type Fault, type Problem, problem } from '#http';
import type { BookingRow, Database, Tables } from '#storage';
import { type FreeStay, findFreeOffer, freeStays, offersOf, takenIn, takeUnits, unitsLeft } from './availability.ts';
import { createReference } from './booking-view.ts';
import { createRefundSteps } from './cancellation.ts';
import type { BookingKind, Offer } from './kind.ts';
import { type BookingLimits, lockUser, requireHold, requireUnit } from './limits.ts';
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

export interface CreateBookingOptions {
  readonly database: Pick<Database, 'dialect'>;
  readonly kind: BookingKind;
  readonly limits: BookingLimits;
}

/** In a transaction, which must be rolled back when it throws: `bad-body`, `too-many-holds`, `too-many-units`, or SoldOut. */
export async function createBooking<Row extends BookingRow>(
  { database, kind, limits }: CreateBookingOptions,
  transaction: Kysely<Tables>,
  request: BookingRequest,
): Promise<Row> {
  // The user before the hotel or car: otherwise two bookings could deadlock.
  await lockUser(database, transaction, kind, request.user);
  if (request.hold) await requireHold(transaction, kind, limits, request);
  if (database.dialect === 'postgres') await lock(transaction, kind, request.resourceId);
  const { offer, stay } = await choose(transaction, kind, request);
  await requireUnit(transaction, kind, limits, { ...request, stay });
  const heldUntil = request.hold ? timeText(request.nowMs + holdMs) : null;
  // In the order of time, so that bookings made together lie side by side in each index, and a commit writes fewer pages.
  const booking = { id: randomUUIDv7(), request, offer, stay, heldUntil };
  const row = await insert(transaction, kind, booking);
  const units = { offer, stay, bookingId: booking.id, heldUntil, nowMs: request.nowMs };
  // A hold that has lapsed by our clock may have been confirmed by that of another process.
  if (!(await takeUnits(transaction, kind, units))) throw new SoldOut({ request, offers: [offer], fitting: [offer] });
  return row as unknown as Row;
}

/** One booking of a hotel or car at a time. In SQLite the transaction itself is the lock. */
async function lock(transaction: Kysely<Tables>, { tables }: BookingKind, id: string): Promise<void> {
  await sql`select 1 from ${sql.table(tables.resources)} where id = ${id} for no key update`.execute(transaction);
}

async function choose(kysely: Kysely<Tables>, kind: BookingKind, request: BookingRequest): Promise<FreeStay> {
  const { stay, nowMs } = request;
  // Checked here and not with the body: a repeated request gets its stored response, however late it comes.
  if (stay && stay.fromMs < kind.stay.earliestMs(nowMs)) {
    throw badBody({ pointer: `/${kind.stay.fields[0]}`, detail: inThePast });
  }
  const offers = await offersOf(kysely, kind, [request.resourceId]);
  const fitting = fittingOffers(kind, offers, request);
  const chosen = stay
    ? await findFreeOffer(kysely, kind, { offers: fitting, stay, nowMs })
    : (await freeStays(kysely, kind, { offers: fitting, stay: nextStay(kind, nowMs), nowMs }).next()).value;
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

interface NewBooking extends FreeStay {
  readonly id: string;
  readonly request: BookingRequest;
  readonly heldUntil: string | null;
}

/** Draws references until one is new; among a million bookings, one in a million needs a second attempt. */
async function insert(transaction: Kysely<Tables>, kind: BookingKind, booking: NewBooking) {
  const columns = columnsOf(kind, booking);
  for (let attempt = 0; attempt < 5; attempt += 1) {
    const row = { reference: createReference(), ...columns };
    const names = sql.join(Object.keys(row).map((name) => sql.ref(name)));
    const { numAffectedRows } = await sql`insert into ${sql.table(kind.tables.bookings)} (${names})
      values (${sql.join(Object.values(row))}) on conflict (reference) do nothing`.execute(transaction);
    if (numAffectedRows !== 0n) return row;
  }
  throw new Error('no new reference was found for a booking');
}

function columnsOf(kind: BookingKind, { id, request, offer, stay, heldUntil }: NewBooking) {
  const price = offer.price * lengthOf(stay);
  return {
    id,
    [kind.idField]: offer.resource_id,
    user: request.user,
    status: request.hold ? 'pending' : 'confirmed',
    created_at: timeText(request.nowMs),
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
  kind: BookingKind,
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
  kind: BookingKind,
  { request: { stay, guests, nowMs }, offers, fitting }: SoldOutDetails,
): Promise<readonly FreeStay[]> {
  if (stay === undefined) return [];
  const largeEnough = offers.filter((offer) => offer.guests >= guests);
  const taken = await takenIn(kysely, kind, largeEnough, stay, nowMs);
  const found: FreeStay[] = largeEnough
    .filter((offer) => unitsLeft(offer, stay, taken) > 0)
    .slice(0, alternativesMax)
    .map((offer) => ({ offer, stay }));
  if (found.length === alternativesMax) return found;
  for await (const later of freeStays(kysely, kind, { offers: fitting, stay: shiftStay(stay, 1), nowMs })) {
    found.push(later);
    if (found.length === alternativesMax) break;
  }
  return found;
}
