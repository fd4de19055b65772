/** Hotels and their bookings, as data for the booking service. */
import type Koa from 'koa';
import { z } from 'zod';
import { createView } from '#query';
import { type BookingServiceOptions, bookingStatus, createBookingService } from '#services/booking';
import type { HotelBookingRow, HotelRow } from '#storage';

export function createHotelService(options: BookingServiceOptions): Koa {
  return createBookingService(
    {
      inventory: {
        title: 'Hotels',
        all: (kysely) => kysely.selectFrom('hotels').selectAll(),
        view: createView<HotelRow>({
          key: 'id',
          fields: {
            id: { column: 'id', schema: z.uuid() },
            name: { column: 'name', schema: z.string() },
            city: { column: 'city', schema: z.string() },
          },
        }),
        list: { searchable: ['name', 'city'], defaultSort: [{ column: 'name', descending: false }] },
      },
      bookings: {
        title: 'Hotel bookings',
        ownedBy: (kysely, user) =>
          kysely
            .selectFrom('hotel_bookings')
            .select(['id', 'hotel_id', 'user', 'status', 'version', 'created_at'])
            .where('user', '=', user),
        view: createView<HotelBookingRow>({
          key: 'id',
          fields: {
            id: { column: 'id', schema: z.uuid() },
            hotel_id: { column: 'hotel_id', schema: z.uuid() },
            status: { column: 'status', schema: bookingStatus },
          },
        }),
        list: { searchable: ['id', 'hotel_id', 'status'] },
      },
    },
    options,
  );
}
