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
  moneyOf,
  type Offered,
} from '#services/booking';
import type { HotelBookingRow, HotelRow, Tables } from '#storage';
import { hotelTrade } from './hotel-trade.ts';

const { first, last } = bookingFields<HotelBookingRow>();

const hotels = createView<HotelRow & Offered>({
  key: 'id',
  fields: {
    id: { column: 'id', schema: z.uuid() },
    name: { column: 'name', schema: z.string() },
    city: { column: 'city', schema: z.string() },
    room_types: {
      show: ({ offers }) =>
        offers.map(({ name, guests, units, price, currency }) => ({
          name,
          guests,
          rooms: units,
          price: moneyOf(price, currency),
        })),
    },
    availability: {
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
  fields: {
    id: { column: 'id', schema: z.uuid() },
    hotel_id: { column: 'hotel_id', schema: z.uuid() },
    ...first,
    room_type: { column: 'room_type', schema: z.string() },
    check_in: { column: 'starts_at', schema: z.iso.date() },
    check_out: { column: 'ends_at', schema: z.iso.date() },
    guests: { column: 'guests', schema: z.int32() },
    ...last,
  },
});

const end = endSchema(hotelTrade).optional();
const wish = z.strictObject({
  hotel_id: z.uuid().toLowerCase(),
  room_type: z.string().min(1).optional(),
  check_in: end,
  check_out: end,
  guests: z.int().min(1).max(20).default(1),
  hold: z.boolean().default(false),
});

export function createHotelService(options: BookingServiceOptions): Koa {
  return createBookingService<HotelRow, HotelBookingRow, z.infer<typeof wish>>(
    {
      trade: hotelTrade,
      inventory: {
        title: 'Hotels',
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
        title: 'Hotel bookings',
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
