/** The hotel service: defines hotels as a booking kind, booked by the night, with their views and request schema. */
import type Koa from 'koa';
import { sql } from 'kysely';
import { z } from 'zod';
import { createView, urlField } from '#query';
import { bookingFields, idSchema } from '../booking/booking-view.ts';
import { holdSchema } from '../booking/bookings.ts';
import type { WithAvailability } from '../booking/inventory.ts';
import type { BookingKind } from '../booking/kind.ts';
import { moneyFor, moneyOf } from '../booking/money.ts';
import { type BookingServiceOptions, createBookingService } from '../booking/service.ts';
import { dayMs, isDay, stayEndSchemas } from '../booking/stay.ts';
import type { HotelBookingRow, HotelRow } from '../storage/schema.ts';

export function createHotelService(options: BookingServiceOptions): Koa {
  return createBookingService<HotelRow, HotelBookingRow, z.infer<typeof requestSchema>>(
    {
      kind: hotelKind,
      inventory: {
        columns: ['id', 'name', 'city'],
        view: hotels,
        title: ({ name }) => name,
        list: { searchable: ['name', 'city'], defaultSort: [{ column: 'name', descending: false }] },
        hasGuests: true,
      },
      bookings: {
        view: bookings,
        list: { searchable: ['id', 'hotel_id', 'status'] },
        schema: requestSchema,
        requestOf: ({ hotel_id, room_type, guests, hold }) => ({
          resourceId: hotel_id,
          offerName: room_type,
          guests,
          hold,
        }),
      },
    },
    options,
  );
}

export const hotelKind: BookingKind = Object.freeze({
  name: 'hotel',
  plural: 'hotels',
  dayName: 'night',
  tables: { resources: 'hotels', offers: 'room_types', days: 'hotel_nights', bookings: 'hotel_bookings' },
  idField: 'hotel_id',
  offer: {
    columns: { resource: sql.ref('hotel_id'), name: sql.ref('name'), guests: sql.ref('guests') },
    nameField: 'room_type',
    noun: 'room type',
    unitNoun: 'room',
  },
  stay: {
    fields: ['check_in', 'check_out'],
    format: 'date',
    examples: ['2031-05-12', '2031-05-15'],
    parse: parseDate,
    print: (ms) => new Date(ms).toISOString().slice(0, 10),
    earliestMs: (nowMs) => Math.floor(nowMs / dayMs) * dayMs,
    nextDay: (nowMs) => Math.floor(nowMs / dayMs),
  },
  booking: {
    columns: ['room_type', 'guests'],
    valuesOf: ({ name }, guests) => ({ room_type: name, guests }),
  },
  alternative: {
    shape: { room_type: z.string().meta({ examples: ['double'] }) },
    valuesOf: ({ name }) => ({ room_type: name }),
  },
} satisfies BookingKind);

function parseDate(text: string): number | undefined {
  return /^\d{4}-\d\d-\d\d$/.test(text) && isDay(text) ? Date.parse(text) : undefined;
}

const { first, last } = bookingFields<HotelBookingRow>();

const hotelId = idSchema('bdd640fb-0667-4ad1-9c80-317fa3b1799d');
const bookingId = idSchema('0b6f1c52-7d7e-4a57-9d43-5f0f6c1d2a01');
const roomType = z.string().meta({ examples: ['double'] });

const roomTypesSchema = z.array(
  z.object({
    name: roomType,
    guests: z.int32().describe('The number of guests that a room sleeps.'),
    rooms: z.int32().describe('The number of rooms of this type.'),
    price: moneyFor('The price per night.'),
  }),
);

const availabilitySchema = z
  .array(
    z.object({ room_type: roomType, rooms_left: z.int32().min(1), price: moneyFor('The price of the whole stay.') }),
  )
  .optional()
  .describe('Availability for the stay. Present when `check_in` and `check_out` are given.');

const hotels = createView<HotelRow & WithAvailability>({
  key: 'id',
  name: 'Hotel',
  fields: {
    id: { column: 'id', schema: hotelId },
    name: { column: 'name', schema: z.string().meta({ examples: ['Lindenhof'] }) },
    city: { column: 'city', schema: z.string().meta({ examples: ['Berlin'] }) },
    room_types: {
      schema: roomTypesSchema,
      show: ({ offers }) =>
        offers.map(({ name, guests, units, price, currency }) => ({
          name,
          guests,
          rooms: units,
          price: moneyOf(price, currency),
        })),
    },
    availability: {
      schema: availabilitySchema,
      show: ({ available }) =>
        available?.map(({ offer, units, price }) => ({
          room_type: offer.name,
          rooms_left: units,
          price: moneyOf(price, offer.currency),
        })),
    },
    url: urlField<HotelRow & WithAvailability>({ column: 'id', schema: hotelId }),
  },
});

const bookings = createView<HotelBookingRow>({
  key: 'id',
  name: 'HotelBooking',
  fields: {
    id: { column: 'id', schema: bookingId },
    hotel_id: { column: 'hotel_id', schema: hotelId, collection: '' },
    ...first,
    room_type: { column: 'room_type', schema: roomType },
    check_in: { column: 'starts_at', schema: z.iso.date() },
    check_out: { column: 'ends_at', schema: z.iso.date().describe('The day of departure.') },
    guests: { column: 'guests', schema: z.int32() },
    ...last,
  },
});

const [checkIn, checkOut] = stayEndSchemas(hotelKind);
const requestSchema = z
  .strictObject({
    hotel_id: z.uuid().toLowerCase(),
    room_type: z.string().min(1).optional().describe('If omitted, the cheapest free room type is booked.'),
    check_in: checkIn.optional(),
    check_out: checkOut.optional(),
    guests: z.int().min(1).max(20).default(1),
    hold: holdSchema,
  })
  .meta({
    id: 'HotelBookingRequest',
    examples: [
      { hotel_id: 'bdd640fb-0667-4ad1-9c80-317fa3b1799d', check_in: '2030-06-03', check_out: '2030-06-06', guests: 2 },
    ],
  });
