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
  moneyOf,
  type Offered,
} from '#services/booking';
import type { CarBookingRow, CarRow, Tables } from '#storage';
import { carTrade } from './car-trade.ts';

const { first, last } = bookingFields<CarBookingRow>();

const cars = createView<CarRow & Offered>({
  key: 'id',
  fields: {
    id: { column: 'id', schema: z.uuid() },
    model: { column: 'model', schema: z.string() },
    class: { column: 'class', schema: z.string() },
    city: { column: 'city', schema: z.string() },
    pickup_place: { column: 'pickup_place', schema: z.string() },
    count: { column: 'units', schema: z.int32() },
    price: { show: ({ price, currency }) => moneyOf(price, currency) },
    availability: {
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
  fields: {
    id: { column: 'id', schema: z.uuid() },
    car_id: { column: 'car_id', schema: z.uuid() },
    ...first,
    pickup_at: { column: 'starts_at', schema: z.iso.datetime() },
    dropoff_at: { column: 'ends_at', schema: z.iso.datetime() },
    ...last,
  },
});

const end = endSchema(carTrade).optional();
const wish = z.strictObject({
  car_id: z.uuid().toLowerCase(),
  pickup_at: end,
  dropoff_at: end,
  hold: z.boolean().default(false),
});

export function createCarService(options: BookingServiceOptions): Koa {
  return createBookingService<CarRow, CarBookingRow, z.infer<typeof wish>>(
    {
      trade: carTrade,
      inventory: {
        title: 'Cars',
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
        title: 'Car bookings',
        view: bookings,
        list: { searchable: ['id', 'car_id', 'status'] },
        schema: wish,
        wanted: ({ car_id, hold }) => ({ thingId: car_id, offerName: undefined, guests: 1, hold }),
      },
    },
    options,
  );
}
