/** The hotel booking service: hotels and the caller's bookings. */
export { createHotelService } from './hotel.ts';
