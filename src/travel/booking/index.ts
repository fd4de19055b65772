/** The common part of the hotel and car services: a booking service for one kind of booking. */
export { bookingFields, idSchema } from './booking-view.ts';
export { holdSchema } from './bookings.ts';
export type { WithAvailability } from './inventory.ts';
export type { BookingKind } from './kind.ts';
export { createRefundSteps, moneyFor, moneyOf } from './money.ts';
export { type BookingServiceOptions, createBookingService } from './service.ts';
export { dayMs, isDay, stayEndSchemas } from './stay.ts';
