/** The car service: defines cars as a booking kind, booked by UTC calendar day, with their views and request schema. */
import type Koa from 'koa';
import { sql } from 'kysely';
import { z } from 'zod';
import { createView, timeSchema, urlField } from '#query';
import { bookingFields, idSchema } from '../booking/booking-view.ts';
import { holdSchema } from '../booking/bookings.ts';
import type { WithAvailability } from '../booking/inventory.ts';
import type { BookingKind } from '../booking/kind.ts';
import { moneyFor, moneyOf } from '../booking/money.ts';
import { type BookingServiceOptions, createBookingService } from '../booking/service.ts';
import { dayMs, stayEndSchemas } from '../booking/stay.ts';
import type { CarBookingRow, CarRow } from '../storage/schema.ts';

export function createCarService(options: BookingServiceOptions): Koa {
  return createBookingService<CarRow, CarBookingRow, z.infer<typeof requestSchema>>(
    {
      kind: carKind,
      inventory: {
        columns: ['id', 'model', 'class', 'city', 'pickup_place', 'units', 'price', 'currency'],
        view: cars,
        title: ({ model }) => model,
        list: { searchable: ['model', 'class', 'city'], defaultSort: [{ column: 'model', descending: false }] },
      },
      bookings: {
        view: bookings,
        list: { searchable: ['id', 'car_id', 'status'] },
        schema: requestSchema,
        requestOf: ({ car_id, hold }) => ({ resourceId: car_id, offerName: undefined, guests: 1, hold }),
      },
    },
    options,
  );
}

/** A car has exactly one offer: itself, for one guest (the renter). */
export const carKind: BookingKind = Object.freeze({
  name: 'car',
  plural: 'cars',
  dayName: 'day',
  tables: { resources: 'cars', offers: 'cars', days: 'car_days', bookings: 'car_bookings' },
  idField: 'car_id',
  offer: {
    columns: { resource: sql.ref('id'), name: sql.lit(''), guests: sql.lit(1) },
    nameField: 'car_id',
    noun: 'offer',
    unitNoun: 'car',
  },
  stay: {
    fields: ['pickup_at', 'dropoff_at'],
    format: 'date-time',
    examples: ['2031-05-12T09:00:00+02:00', '2031-05-15T18:00:00+02:00'],
    parse: parseTime,
    print: (ms) => new Date(ms).toISOString(),
    earliestMs: (nowMs) => nowMs,
    // Tomorrow, because part of today is already over.
    nextDay: (nowMs) => Math.floor(nowMs / dayMs) + 1,
  },
  booking: { columns: [], valuesOf: () => ({}) },
  alternative: { shape: {}, valuesOf: () => ({}) },
} satisfies BookingKind);

const time = z.iso.datetime({ offset: true });

function parseTime(text: string): number | undefined {
  const ms = time.safeParse(text).success ? Date.parse(text) : Number.NaN;
  return Number.isNaN(ms) ? undefined : ms;
}

const { first, last } = bookingFields<CarBookingRow>();

const carId = idSchema('9a1de644-815e-46d1-bb8f-aa1837f8a88b');
const bookingId = idSchema('0b6f1c52-7d7e-4a57-9d43-5f0f6c1d2a02');

const availabilitySchema = z
  .object({
    cars_left: z.int32().min(0),
    price: moneyFor('The price of the whole rental. Missing when no car is left.').optional(),
  })
  .optional()
  .describe('Availability for the rental. Present when `pickup_at` and `dropoff_at` are given.');

const cars = createView<CarRow & WithAvailability>({
  key: 'id',
  name: 'Car',
  fields: {
    id: { column: 'id', schema: carId },
    model: { column: 'model', schema: z.string().meta({ examples: ['Volkswagen Polo'] }) },
    class: { column: 'class', schema: z.string().meta({ examples: ['economy'] }) },
    city: { column: 'city', schema: z.string().meta({ examples: ['Berlin'] }) },
    pickup_place: { column: 'pickup_place', schema: z.string().meta({ examples: ['Berlin, Hauptbahnhof'] }) },
    count: { column: 'units', schema: z.int32().describe('The number of cars of this model at this place.') },
    price: { schema: moneyFor('The price per day.'), show: ({ price, currency }) => moneyOf(price, currency) },
    availability: {
      schema: availabilitySchema,
      show({ available, currency }) {
        if (available === undefined) return undefined;
        const [{ units, price } = { units: 0, price: undefined }] = available;
        return { cars_left: units, ...(price !== undefined && { price: moneyOf(price, currency) }) };
      },
    },
    url: urlField<CarRow & WithAvailability>({ column: 'id', schema: carId }),
  },
});

const bookings = createView<CarBookingRow>({
  key: 'id',
  name: 'CarBooking',
  fields: {
    id: { column: 'id', schema: bookingId },
    car_id: { column: 'car_id', schema: carId, collection: '' },
    ...first,
    pickup_at: { column: 'starts_at', schema: timeSchema },
    dropoff_at: { column: 'ends_at', schema: timeSchema },
    ...last,
  },
});

const [pickupAt, dropoffAt] = stayEndSchemas(carKind);
const requestSchema = z
  .strictObject({
    car_id: z.uuid().toLowerCase(),
    pickup_at: pickupAt.optional(),
    dropoff_at: dropoffAt.optional(),
    hold: holdSchema,
  })
  .meta({
    id: 'CarBookingRequest',
    examples: [
      {
        car_id: '9a1de644-815e-46d1-bb8f-aa1837f8a88b',
        pickup_at: '2030-06-03T10:00:00+02:00',
        dropoff_at: '2030-06-06T18:00:00+02:00',
      },
    ],
  });
