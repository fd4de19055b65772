/** Hotels and their bookings, as data for the booking service. */
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
import type { HotelBookingRow, HotelRow, Tables } from '#storage';
import { hotelTrade } from './hotel-trade.ts';

const { first, last } = bookingFields<HotelBookingRow>();

// Ids of the demo's rows, so that what the documentation shows can be tried.
const hotelId = z.uuid().meta({ examples: ['bdd640fb-0667-4ad1-9c80-317fa3b1799d'] });
const bookingId = z.uuid().meta({ examples: ['0b6f1c52-7d7e-4a57-9d43-5f0f6c1d2a01'] });
const roomType = z.string().meta({ examples: ['double'] });

const hotels = createView<HotelRow & Offered>({
  key: 'id',
  name: 'Hotel',
  fields: {
    id: { column: 'id', schema: hotelId },
    name: { column: 'name', schema: z.string() },
    city: { column: 'city', schema: z.string() },
    room_types: {
      schema: z.array(
        z.object({
          name: roomType,
          guests: z.int32().describe('That it sleeps.'),
          rooms: z.int32().describe('That the hotel has.'),
          price: moneyFor('Of a night.'),
        }),
      ),
      show: ({ offers }) =>
        offers.map(({ name, guests, units, price, currency }) => ({
          name,
          guests,
          rooms: units,
          price: moneyOf(price, currency),
        })),
    },
    availability: {
      schema: z
        .array(
          z.object({
            room_type: roomType,
            rooms_left: z.int32().min(1),
            price: moneyFor('Of the whole stay.'),
          }),
        )
        .optional()
        .describe('What is left, where `check_in` and `check_out` were asked for.'),
      show: ({ left }) =>
        left?.map(({ offer, units, price }) => ({
          room_type: offer.name,
          rooms_left: units,
          price: moneyOf(price, offer.currency),
        })),
    },
  },
});

const bookings = createView<HotelBookingRow>({
  key: 'id',
  name: 'HotelBooking',
  fields: {
    id: { column: 'id', schema: bookingId },
    hotel_id: { column: 'hotel_id', schema: hotelId },
    ...first,
    room_type: { column: 'room_type', schema: roomType },
    check_in: { column: 'starts_at', schema: z.iso.date() },
    check_out: { column: 'ends_at', schema: z.iso.date().describe('The day of leaving.') },
    guests: { column: 'guests', schema: z.int32() },
    ...last,
  },
});

const end = endSchema(hotelTrade).optional();
const wish = z
  .strictObject({
    hotel_id: z.uuid().toLowerCase(),
    room_type: z.string().min(1).optional().describe('The cheapest that is free, unless it is named.'),
    check_in: end,
    check_out: end,
    guests: z.int().min(1).max(20).default(1),
    hold: holdSchema,
  })
  .meta({
    id: 'HotelBookingRequest',
    examples: [
      {
        hotel_id: 'bdd640fb-0667-4ad1-9c80-317fa3b1799d',
        check_in: '2030-06-03',
        check_out: '2030-06-06',
        guests: 2,
      },
    ],
  });

export function createHotelService(options: BookingServiceOptions): Koa {
  return createBookingService<HotelRow, HotelBookingRow, z.infer<typeof wish>>(
    {
      trade: hotelTrade,
      inventory: {
        all: (kysely) =>
          kysely.selectFrom('hotels').select(['id', 'name', 'city']) as SelectQueryBuilder<
            Tables,
            keyof Tables,
            HotelRow
          >,
        view: hotels,
        list: { searchable: ['name', 'city'], defaultSort: [{ column: 'name', descending: false }] },
        hasGuests: true,
      },
      bookings: {
        view: bookings,
        list: { searchable: ['id', 'hotel_id', 'status'] },
        schema: wish,
        wanted: ({ hotel_id, room_type, guests, hold }) => ({
          thingId: hotel_id,
          offerName: room_type,
          guests,
          hold,
        }),
      },
    },
    options,
  );
}
