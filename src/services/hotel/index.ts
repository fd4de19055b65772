/** The hotel booking service: hotels, and the caller's bookings of them. */
export { createHotelService } from './hotel.ts';
