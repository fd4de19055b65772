/** A client of `frontdesk serve --only hotel`, which trusts the header that names the user. */
import assert from 'node:assert/strict';
import { type Server, startServer } from '../support/programs/frontdesk-process.ts';

export interface Order {
  readonly hotel_id: string;
  readonly room_type: string;
  readonly check_in: string;
  readonly check_out: string;
}

export interface HotelBooking extends Order {
  readonly id: string;
  readonly reference: string;
  readonly status: string;
}

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: unknown;
}

export interface RoomType {
  readonly hotel_id: string;
  readonly room_type: string;
  readonly rooms: number;
}

interface HotelItem {
  readonly id: string;
  readonly room_types: readonly { readonly name: string; readonly rooms: number }[];
  readonly availability?: readonly { readonly room_type: string; readonly rooms_left: number }[];
}

/** Starts only the hotel service, with the demo data, a stable public URL, little logging and high limits for users. */
export function startHotels(databaseUrl: string): Promise<Server> {
  const env = {
    DATABASE_URL: databaseUrl,
    LOG_LEVEL: 'error',
    PUBLIC_URL: 'http://hotels.test',
    BOOKING_UNITS_MAX: '1000',
  };
  return startServer(['--only', 'hotel'], { env });
}

/** The ISO date that many days from today in UTC. */
export function dateIn(days: number): string {
  return new Date(Date.now() + days * 86_400_000).toISOString().slice(0, 10);
}

/** Rejects when the connection breaks before the response is complete. */
export async function postOrder(server: Server, order: Order, user: string, key?: string): Promise<Answer> {
  const headers = {
    'content-type': 'application/json',
    'x-travel-user': user,
    ...(key === undefined ? {} : { 'idempotency-key': key }),
  };
  const url = `${server.gatewayUrl}/bookings/`;
  return answerOf(await fetch(url, { method: 'POST', headers, body: JSON.stringify(order) }));
}

/** Cancels the booking in any version. */
export async function cancelBooking(server: Server, { id }: HotelBooking, user: string): Promise<Answer> {
  const headers = { 'content-type': 'application/json', 'x-travel-user': user, 'if-match': '*' };
  const url = `${server.gatewayUrl}/bookings/${id}`;
  return answerOf(await fetch(url, { method: 'PATCH', headers, body: '{"status":"cancelled"}' }));
}

async function answerOf(answer: Response): Promise<Answer> {
  return { status: answer.status, headers: answer.headers, body: await answer.json() };
}

export async function listRoomTypes(server: Server): Promise<readonly RoomType[]> {
  const items = await listAll<HotelItem>(server, '/?limit=100', 'anyone');
  return items.flatMap(({ id, room_types }) =>
    room_types.map(({ name, rooms }) => ({ hotel_id: id, room_type: name, rooms })),
  );
}

/** Returns the number of rooms left, by `<hotel id> <room type>`. Sold-out types are omitted. */
export async function leftInNight(server: Server, checkIn: string, checkOut: string): Promise<Map<string, number>> {
  const path = `/?limit=100&check_in=${checkIn}&check_out=${checkOut}`;
  const items = await listAll<HotelItem>(server, path, 'anyone');
  const rows = items.flatMap(({ id, availability = [] }) =>
    availability.map(({ room_type, rooms_left }) => [`${id} ${room_type}`, rooms_left] as const),
  );
  return new Map(rows.filter(([, left]) => left > 0));
}

export function listBookings(server: Server, user: string): Promise<readonly HotelBooking[]> {
  return listAll<HotelBooking>(server, '/bookings/?limit=100', user);
}

/** Reads all pages of a list. */
async function listAll<Item>(server: Server, path: string, user: string): Promise<readonly Item[]> {
  const items: Item[] = [];
  for (let next: string | undefined = path; next !== undefined; ) {
    const answer = await fetch(server.gatewayUrl + next, { headers: { 'x-travel-user': user } });
    assert.equal(answer.status, 200, next);
    const page = (await answer.json()) as { items: Item[]; links: { next?: string } };
    items.push(...page.items);
    next = page.links.next;
  }
  return items;
}
