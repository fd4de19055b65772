/** What the hotel and the car service share. */
export { bookingFields } from './booking-fields.ts';
export {
  type BookingServiceDefinition,
  type BookingServiceOptions,
  createBookingService,
} from './booking-service.ts';
export type { Offered } from './inventory.ts';
export { type Money, moneyFor, moneyOf } from './money.ts';
export { userHeader } from './owner.ts';
export { bookingStatus } from './status.ts';
export { endSchema, holdSchema } from './stay.ts';
export { dayMs, type Offer, type Trade } from './trade.ts';
