/** Records what clients of a hotel service know: the keys and orders that they sent, and the responses. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Server } from '../support/programs/frontdesk-process.ts';
import {
  type Answer,
  cancelBooking,
  dateIn,
  type HotelBooking,
  type Order,
  postOrder,
  type RoomType,
} from './hotel-client.ts';

export interface BookingStore {
  /** Sends a random order with a new key, sometimes followed by a cancellation. False when the connection breaks. */
  readonly order: (server: Server, user: string) => Promise<boolean>;
  /** Sends all orders since the last retry again, with the same keys, and then the cancellations. */
  readonly retry: (server: Server) => Promise<void>;
  /** Returns the current state of acknowledged bookings, by user. */
  readonly bookings: () => ReadonlyMap<string, readonly HotelBooking[]>;
  readonly nights: () => readonly Night[];
}

export interface Night {
  readonly checkIn: string;
  readonly checkOut: string;
  /** The number of rooms left, by `<hotel id> <room type>`. Sold-out types are omitted. */
  readonly left: ReadonlyMap<string, number>;
}

interface Entry {
  readonly user: string;
  readonly key: string;
  readonly order: Order;
  /** The booking in the first response, which a retry must return again. */
  original?: HotelBooking;
  /** The current state of the booking. */
  booking?: HotelBooking;
  isRefused?: boolean;
  /** False if the client cancels the booking. */
  readonly isKept: boolean;
}

/** Few enough that some nights are sold out. */
const nightCount = 30;

export function createBookingStore(roomTypes: readonly RoomType[]): BookingStore {
  const entries: Entry[] = [];
  const unsettled: Entry[] = [];
  const dates = Array.from({ length: nightCount + 1 }, (_, day) => dateIn(60 + day));

  return Object.freeze({
    async order(server, user) {
      const entry = { user, key: randomUUID(), order: drawOrder(roomTypes, dates), isKept: Math.random() < 0.75 };
      entries.push(entry);
      unsettled.push(entry);
      const answer = await postOrder(server, entry.order, user, entry.key).catch(broken);
      if (answer === undefined) return false;
      record(entry, answer);
      return (await cancelUnkept(server, entry).catch(broken)) !== undefined;
    },
    async retry(server) {
      // Refusals are not stored under their key, so sending one again would be a new order.
      const open = unsettled.splice(0).filter(({ isRefused }) => isRefused !== true);
      await Promise.all(open.map((entry) => settle(server, entry)));
    },
    bookings: () => acknowledged(entries),
    nights: () => dates.slice(1).map((checkOut, night) => nightOf([dates[night] ?? '', checkOut], roomTypes, entries)),
  } satisfies BookingStore);
}

async function settle(server: Server, entry: Entry): Promise<void> {
  record(entry, await answerOf(server, entry));
  await cancelUnkept(server, entry);
}

function broken(): undefined {
  return undefined;
}

/** Can be repeated, because the first cancellation may not have arrived. */
async function cancelUnkept(server: Server, entry: Entry): Promise<boolean> {
  const { booking, user, isKept } = entry;
  if (booking === undefined || isKept) return false;
  const { status, body } = await cancelBooking(server, booking, user);
  assert.equal(status, 200, JSON.stringify(body));
  entry.booking = body as HotelBooking;
  assert.equal(entry.booking.status, 'cancelled');
  return true;
}

/** Retries as long as the server asks for it, because the first request with the key may still be in progress. */
async function answerOf(server: Server, { order, user, key }: Entry): Promise<Answer> {
  for (;;) {
    const answer = await postOrder(server, order, user, key);
    const retryAfter = answer.headers.get('retry-after');
    if (retryAfter === null) return answer;
    await sleep(Number(retryAfter) * 1000);
  }
}

/** Checks that the response to a replay is the same as before. */
function record(entry: Entry, { status, body, headers }: Answer): void {
  assert.ok(status === 201 || status === 409, `${status}: ${JSON.stringify(body)}`);
  if (entry.original !== undefined) {
    assert.equal(headers.get('idempotent-replayed'), 'true');
    assert.deepEqual(body, entry.original);
  } else if (status === 201) {
    entry.original = body as HotelBooking;
    entry.booking = entry.original;
  } else {
    entry.isRefused = true;
  }
}

function acknowledged(entries: readonly Entry[]): ReadonlyMap<string, readonly HotelBooking[]> {
  const byUser = new Map<string, HotelBooking[]>();
  for (const { user, booking } of entries) {
    const others = byUser.get(user) ?? [];
    if (booking !== undefined) byUser.set(user, [...others, booking]);
  }
  return byUser;
}

function drawOrder(roomTypes: readonly RoomType[], dates: readonly string[]): Order {
  const { hotel_id, room_type } = draw(roomTypes);
  const length = draw([1, 2, 3]);
  const check_in = draw(dates.slice(0, -length));
  return { hotel_id, room_type, check_in, check_out: dates[dates.indexOf(check_in) + length] ?? '' };
}

function draw<Item>(items: readonly Item[]): Item {
  const item = items[Math.floor(Math.random() * items.length)];
  if (item === undefined) throw new Error('there is nothing to draw from');
  return item;
}

function nightOf(
  [checkIn, checkOut]: readonly [string, string],
  roomTypes: readonly RoomType[],
  entries: readonly Entry[],
): Night {
  const taken = new Map<string, number>();
  for (const { booking, order } of entries) {
    const name = `${order.hotel_id} ${order.room_type}`;
    const covers = booking?.status === 'confirmed' && order.check_in <= checkIn && checkIn < order.check_out;
    if (covers) taken.set(name, (taken.get(name) ?? 0) + 1);
  }
  const left = roomTypes.map(({ hotel_id, room_type, rooms }) => {
    const name = `${hotel_id} ${room_type}`;
    return [name, rooms - (taken.get(name) ?? 0)] as const;
  });
  return { checkIn, checkOut, left: new Map(left.filter(([, count]) => count > 0)) };
}
