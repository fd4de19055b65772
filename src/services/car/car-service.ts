/** Cars and their bookings, as data for the booking service. */
import type Koa from 'koa';
import type { SelectQueryBuilder } from 'kysely';
import { z } from 'zod';
import { createView } from '#query';
import {
  type BookingServiceOptions,
  bookingFields,
  createBookingService,
  endSchema,
  holdSchema,
  moneyFor,
  moneyOf,
  type Offered,
} from '#services/booking';
import type { CarBookingRow, CarRow, Tables } from '#storage';
import { carTrade } from './car-trade.ts';

const { first, last } = bookingFields<CarBookingRow>();

// Ids of the demo's rows, so that what the documentation shows can be tried.
const carId = z.uuid().meta({ examples: ['9a1de644-815e-46d1-bb8f-aa1837f8a88b'] });
const bookingId = z.uuid().meta({ examples: ['0b6f1c52-7d7e-4a57-9d43-5f0f6c1d2a02'] });

const cars = createView<CarRow & Offered>({
  key: 'id',
  name: 'Car',
  fields: {
    id: { column: 'id', schema: carId },
    model: { column: 'model', schema: z.string() },
    class: { column: 'class', schema: z.string().meta({ examples: ['economy'] }) },
    city: { column: 'city', schema: z.string() },
    pickup_place: { column: 'pickup_place', schema: z.string() },
    count: { column: 'units', schema: z.int32().describe('Cars of this kind that there are.') },
    price: { schema: moneyFor('Of a day.'), show: ({ price, currency }) => moneyOf(price, currency) },
    availability: {
      schema: z
        .object({
          cars_left: z.int32().min(0),
          price: moneyFor('Of the whole rental, where one is left.').optional(),
        })
        .optional()
        .describe('What is left, where `pickup_at` and `dropoff_at` were asked for.'),
      show({ left, currency }) {
        if (left === undefined) return undefined;
        const [{ units, price } = { units: 0, price: undefined }] = left;
        return { cars_left: units, ...(price !== undefined && { price: moneyOf(price, currency) }) };
      },
    },
  },
});

const bookings = createView<CarBookingRow>({
  key: 'id',
  name: 'CarBooking',
  fields: {
    id: { column: 'id', schema: bookingId },
    car_id: { column: 'car_id', schema: carId },
    ...first,
    pickup_at: { column: 'starts_at', schema: z.iso.datetime() },
    dropoff_at: { column: 'ends_at', schema: z.iso.datetime() },
    ...last,
  },
});

const end = endSchema(carTrade).optional();
const wish = z
  .strictObject({
    car_id: z.uuid().toLowerCase(),
    pickup_at: end,
    dropoff_at: end,
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

export function createCarService(options: BookingServiceOptions): Koa {
  return createBookingService<CarRow, CarBookingRow, z.infer<typeof wish>>(
    {
      trade: carTrade,
      inventory: {
        all: (kysely) =>
          kysely
            .selectFrom('cars')
            .select([
              'id',
              'model',
              'class',
              'city',
              'pickup_place',
              'units',
              'price',
              'currency',
            ]) as SelectQueryBuilder<Tables, keyof Tables, CarRow>,
        view: cars,
        list: { searchable: ['model', 'class', 'city'], defaultSort: [{ column: 'model', descending: false }] },
      },
      bookings: {
        view: bookings,
        list: { searchable: ['id', 'car_id', 'status'] },
        schema: wish,
        wanted: ({ car_id, hold }) => ({ thingId: car_id, offerName: undefined, guests: 1, hold }),
      },
    },
    options,
  );
}
