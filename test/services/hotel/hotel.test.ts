/** The hotel service: its fields and the headings of its pages. */
import { createHotelService } from '#services/hotel';
import { describeService } from '../booking/describe-service.ts';

const hotel = { id: '1000000a-0000-4000-8000-000000000001', name: 'Ritz', city: 'Paris' };
const room = { hotel_id: hotel.id, name: 'double', guests: 2, price: 12_050, units: 3 };
const booking = { id: '20000000-0000-4000-8000-000000000001', hotel_id: hotel.id, status: 'confirmed' };

describeService('createHotelService', {
  create: createHotelService,
  resource: {
    ...hotel,
    room_types: [{ name: 'double', guests: 2, rooms: 3, price: { amount: '120.50', currency: 'EUR' } }],
    url: `/${hotel.id}`,
  },
  booking: {
    ...booking,
    reference: '95EB-2692',
    room_type: 'double',
    check_in: '2030-01-01',
    check_out: '2030-01-02',
    guests: 1,
    price: { amount: '0.00', currency: 'EUR' },
    created_at: '2030-01-01T00:00:00.000Z',
    cancellation_policy: [],
    url: `/bookings/${booking.id}`,
  },
  filters: ['id', 'hotel_id', 'status', 'reference', 'room_type', 'check_in', 'check_out', 'guests', 'created_at'],
  rows: {
    hotels: [hotel],
    room_types: [{ ...room, id: '30000000-0000-4000-8000-000000000001' }],
    hotel_bookings: [{ ...booking, room_type: 'double', user: 'ann' }],
  },
  refused: ['hotel_id=ritz', 'status=lost', 'car_id=x', 'check_in=today', 'price=1'],
  headings: ['Hotels', 'Hotel'],
});
