/** The hotel service: its fields, and the titles of its pages. */
import { createHotelService } from '#services/hotel';
import { describeService } from '../booking/describe-service.ts';

const thing = { id: '10000000-0000-4000-8000-000000000001', name: 'Ritz', city: 'Paris' };
const booking = { id: '20000000-0000-4000-8000-000000000001', hotel_id: thing.id, status: 'confirmed' };

describeService('createHotelService', {
  create: createHotelService,
  thing,
  booking,
  rows: { hotels: [thing], hotel_bookings: [{ ...booking, user: 'ann' }] },
  refused: ['hotel_id=ritz', 'status=lost', 'car_id=x'],
  page: /<h1>Hotels<\/h1>.*Ritz/s,
});
