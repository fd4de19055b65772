/** The car booking service: cars, and the caller's bookings of them. */
export { createCarService } from './car.ts';
