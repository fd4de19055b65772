/** What renting a car is: every calendar day (UTC) that the rental touches. */
import { sql } from 'kysely';
import { z } from 'zod';
import { dayMs, type Trade } from '#services/booking';

const time = z.iso.datetime({ offset: true });

export const carTrade: Trade = Object.freeze({
  name: 'car',
  dayName: 'day',
  things: 'cars',
  offers: 'cars',
  days: 'car_days',
  bookings: 'car_bookings',
  thing: 'car_id',
  offer: { thing: sql.ref('id'), name: sql.lit(''), guests: sql.lit(1) },
  more: [],
  moreOf: () => ({}),
  ends: ['pickup_at', 'dropoff_at'],
  readEnd(text) {
    const ms = time.safeParse(text).success ? Date.parse(text) : Number.NaN;
    return Number.isNaN(ms) ? undefined : ms;
  },
  writeEnd: (ms) => new Date(ms).toISOString(),
  endFormat: 'date-time',
  endExample: '2031-05-12T09:00:00+02:00',
  earliestMs: (nowMs) => nowMs,
  // Today has begun.
  nextDay: (nowMs) => Math.floor(nowMs / dayMs) + 1,
  offerFields: () => ({}),
  offerShape: {},
} satisfies Trade);
