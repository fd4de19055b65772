/** The car booking service: cars and the caller's bookings. */
export { createCarService } from './car.ts';
