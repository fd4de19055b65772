/** Creates booking requests, each for a different hotel or night, and an inventory that is large enough for all of them. */
import { booking } from './booking.ts';

const hotels = 1000;
const nights = 365;
const dayMs = 86_400_000;

/**
 * The body of an order, which is a request for a booking. All bodies have the same length. Consecutive orders are for
 * different nights, so that no night has many bookings. After 365,000 orders all rooms are booked.
 */
export function orderBody(number: number): string {
  const checkIn = Date.now() + (1 + (number % nights)) * dayMs;
  return JSON.stringify({
    hotel_id: hotelId(Math.floor(number / nights) % hotels),
    room_type: 'single',
    check_in: dateOf(checkIn),
    check_out: dateOf(checkIn + dayMs),
  });
}

/** The text of a demo.yaml with one room for each hotel, the booking to read, and enough bookings to fill a page. */
export function formatInventory(): string {
  const ids = Array.from({ length: hotels }, (_, index) => hotelId(index));
  const name = 'Bench';
  return JSON.stringify({
    hotels: [...ids, booking.hotel_id].map((id) => ({ id, name, city: 'Berlin' })),
    room_types: ids.map((id) => ({ id, hotel_id: id, name: 'single', guests: 1, units: 1, price: 9900 })),
    hotel_bookings: [booking.id, ...ids.slice(1, 20)].map((id) => ({ ...booking, id, user: 'demo' })),
  });
}

function hotelId(index: number): string {
  return `00000000-0000-4000-8000-${String(index).padStart(12, '0')}`;
}

function dateOf(timeMs: number): string {
  return new Date(timeMs).toISOString().slice(0, 10);
}
