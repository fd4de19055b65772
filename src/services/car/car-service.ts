/** Cars and their bookings, as data for the booking service. */
import type Koa from 'koa';
import { z } from 'zod';
import { createView } from '#query';
import { type BookingServiceOptions, bookingStatus, createBookingService } from '#services/booking';
import type { CarBookingRow, CarRow } from '#storage';

export function createCarService(options: BookingServiceOptions): Koa {
  return createBookingService(
    {
      inventory: {
        title: 'Cars',
        all: (kysely) => kysely.selectFrom('cars').selectAll(),
        view: createView<CarRow>({
          key: 'id',
          fields: {
            id: { column: 'id', schema: z.uuid() },
            model: { column: 'model', schema: z.string() },
            class: { column: 'class', schema: z.string() },
            city: { column: 'city', schema: z.string() },
          },
        }),
        list: { searchable: ['model', 'class', 'city'], defaultSort: [{ column: 'model', descending: false }] },
      },
      bookings: {
        title: 'Car bookings',
        ownedBy: (kysely, user) =>
          kysely
            .selectFrom('car_bookings')
            .select(['id', 'car_id', 'user', 'status', 'version', 'created_at'])
            .where('user', '=', user),
        view: createView<CarBookingRow>({
          key: 'id',
          fields: {
            id: { column: 'id', schema: z.uuid() },
            car_id: { column: 'car_id', schema: z.uuid() },
            status: { column: 'status', schema: bookingStatus },
          },
        }),
        list: { searchable: ['id', 'car_id', 'status'] },
      },
    },
    options,
  );
}
