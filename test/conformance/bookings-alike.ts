/** Hotels and cars are booked alike: the same cases for both, with a calendar of its own for each desk. */
import { createBookingClient } from './booking-client.ts';
import { bookingKinds } from './booking-kinds.ts';
import { bodyCases } from './bookings-bodies.ts';
import { creationCases } from './bookings-create.ts';
import { lifeCases } from './bookings-life.ts';
import { ownerCases } from './bookings-owners.ts';
import { retryCases } from './bookings-retries.ts';
import { soldOutCases } from './bookings-sold-out.ts';
import type { OpenDesk } from './desk.ts';

export function bookingLifeCases(desk: OpenDesk): void {
  for (const kind of bookingKinds) {
    const client = createBookingClient(desk, kind);
    for (const declare of [creationCases, ownerCases, bodyCases, lifeCases, retryCases, soldOutCases]) declare(client);
  }
}
