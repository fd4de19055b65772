/** What a desk promises to its users, as cases for any layout of its modules. */
import { authenticationCases, authServiceCases } from './authentication.ts';
import { bookingChangeCases } from './booking-changes.ts';
import { bookingKinds, createBookingClient } from './booking-client.ts';
import { bookingRetryCases } from './booking-retries.ts';
import { bookingCases } from './bookings.ts';
import type { Desk, OpenDesk } from './desk.ts';
import { diagnosticsCases } from './diagnostics.ts';
import { errorCases } from './errors.ts';
import { listCases } from './lists.ts';
import { pathCases } from './paths.ts';
import { rateLimitCases, rateLimitHttpCases, rateLimitServiceCases } from './rate-limits.ts';
import { representationCases } from './representations.ts';
import { versionCases } from './versions.ts';

/** What a layout may serve; each has its own address in `Desk`. */
export type Listener = 'gateway' | 'auth' | 'ratelimit' | 'ratelimitHttp';

const readCases = [authenticationCases, versionCases, rateLimitCases, pathCases, representationCases, errorCases];

const cases: Readonly<Record<Listener, readonly ((desk: OpenDesk) => void)[]>> = {
  // Bookings come last, because they change what lists show.
  gateway: [...readCases, listCases, diagnosticsCases, allBookingCases],
  auth: [authServiceCases],
  ratelimit: [rateLimitServiceCases],
  ratelimitHttp: [rateLimitHttpCases],
};

const everyListener: readonly Listener[] = ['gateway', 'auth', 'ratelimit', 'ratelimitHttp'];

/** `open` starts the layout once for all cases; `listeners` are those that it has. */
export function conformance(name: string, open: () => Promise<Desk>, listeners = everyListener): void {
  describe(`conformance: ${name}`, () => {
    let opened: Desk | undefined;
    const desk = () => {
      if (opened === undefined) throw new Error('the desk is not open');
      return opened;
    };

    before(async function () {
      this.timeout(30_000);
      opened = await open();
    });

    after(() => opened?.close());

    for (const declare of listeners.flatMap((listener) => cases[listener])) declare(desk);
  });
}

function allBookingCases(desk: OpenDesk): void {
  for (const kind of bookingKinds) {
    const client = createBookingClient(desk, kind);
    for (const declare of [bookingCases, bookingChangeCases, bookingRetryCases]) declare(client);
  }
}
