/** The car service: its fields and the headings of its pages. */
import { createCarService } from '#services/car';
import { describeService } from '../booking/describe-service.ts';

const car = { id: '1000000a-0000-4000-8000-000000000001', model: 'Zoe', class: 'electric', city: 'Paris' };
const booking = { id: '20000000-0000-4000-8000-000000000001', car_id: car.id, status: 'cancelled' };

describeService('createCarService', {
  create: createCarService,
  resource: {
    ...car,
    pickup_place: 'Gare du Nord',
    count: 2,
    price: { amount: '49.00', currency: 'EUR' },
    url: `/${car.id}`,
  },
  booking: {
    ...booking,
    reference: '95EB-2692',
    pickup_at: '2030-01-01T00:00:00.000Z',
    dropoff_at: '2030-01-02T00:00:00.000Z',
    price: { amount: '80.00', currency: 'EUR' },
    created_at: '2030-01-01T00:00:00.000Z',
    cancellation_policy: [],
    refund: { amount: '0.00', currency: 'EUR' },
    url: `/bookings/${booking.id}`,
  },
  filters: ['id', 'car_id', 'status', 'reference', 'pickup_at', 'dropoff_at', 'created_at'],
  rows: {
    cars: [{ ...car, pickup_place: 'Gare du Nord', units: 2, price: 4_900 }],
    car_bookings: [{ ...booking, price: 8_000, user: 'ann' }],
  },
  refused: ['car_id=zoe', 'status=lost', 'hotel_id=x', 'pickup_at=2030-01-01', 'refund=1'],
  headings: ['Cars', 'Car'],
});
