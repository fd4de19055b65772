/** The car service: its fields, and the titles of its pages. */
import { createCarService } from '#services/car';
import { describeService } from '../booking/describe-service.ts';

const thing = { id: '10000000-0000-4000-8000-000000000001', model: 'Zoe', class: 'electric', city: 'Paris' };
const booking = { id: '20000000-0000-4000-8000-000000000001', car_id: thing.id, status: 'confirmed' };

describeService('createCarService', {
  create: createCarService,
  thing,
  booking,
  rows: { cars: [thing], car_bookings: [{ ...booking, user: 'ann' }] },
  refused: ['car_id=zoe', 'status=lost', 'hotel_id=x'],
  page: /<h1>Cars<\/h1>.*Zoe/s,
});
