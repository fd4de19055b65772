/** What the hotel and the car service share. */
export {
  type BookingRow,
  type BookingServiceDefinition,
  type BookingServiceOptions,
  createBookingService,
} from './booking-service.ts';
export { userHeader } from './owner.ts';
export { bookingStatus } from './status.ts';
