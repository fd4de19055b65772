/** What booking a hotel's room is: nights of a room type, by dates. */
import { sql } from 'kysely';
import { z } from 'zod';
import { dayMs, type Trade } from '#services/booking';

export const hotelTrade: Trade = Object.freeze({
  name: 'hotel',
  dayName: 'night',
  things: 'hotels',
  offers: 'room_types',
  days: 'hotel_nights',
  bookings: 'hotel_bookings',
  thing: 'hotel_id',
  offer: { thing: sql.ref('hotel_id'), name: sql.ref('name'), guests: sql.ref('guests') },
  more: ['room_type', 'guests'],
  moreOf: ({ name }, guests) => ({ room_type: name, guests }),
  ends: ['check_in', 'check_out'],
  readEnd: readDate,
  writeEnd: (ms) => new Date(ms).toISOString().slice(0, 10),
  endFormat: 'date',
  endExample: '2031-05-12',
  earliestMs: (nowMs) => Math.floor(nowMs / dayMs) * dayMs,
  nextDay: (nowMs) => Math.floor(nowMs / dayMs),
  offerFields: ({ name }) => ({ room_type: name }),
  offerShape: { room_type: z.string() },
} satisfies Trade);

/** A day of the calendar; JavaScript alone would take the 30th of February for the 2nd of March. */
function readDate(text: string): number | undefined {
  if (!/^\d{4}-\d\d-\d\d$/.test(text)) return undefined;
  const ms = Date.parse(text);
  return Number.isNaN(ms) || new Date(ms).toISOString().slice(0, 10) !== text ? undefined : ms;
}
