/** What a desk promises to its users, as cases for any layout of its modules. */
import type { Frontdesk } from 'frontdesk';
import { copyConfig } from '../support/desks.ts';
import { temporaryFiles } from '../support/temporary-files.ts';
import { answerCases } from './answers.ts';
import { authenticationCases, authServiceCases } from './authentication.ts';
import { bookingChangeCases } from './booking-changes.ts';
import { type BookingKind, createBookingClient } from './booking-client.ts';
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

/**
 * What a layout may serve; each has its own address in `Desk`. A mounted gateway is one below the path of a host app. The
 * reference is the gateway with which whole answers of the others are compared, in place of every case.
 */
export type Listener = 'reference' | 'gateway' | 'mounted' | 'auth' | 'ratelimit' | 'ratelimitHttp';

/** What other processes may change. */
const gatewayCases = [authenticationCases, rateLimitCases, diagnosticsCases];
/** What a mount may change: paths, redirects, and what the host's middleware may do to an answer. */
const placeCases = [versionCases, pathCases, errorCases];

const cases: Readonly<Record<Listener, readonly ((desk: OpenDesk) => void)[]>> = {
  reference: [...gatewayCases, representationCases, ...placeCases, listCases],
  gateway: [...gatewayCases, answerCases],
  mounted: [...placeCases, answerCases],
  auth: [authServiceCases],
  ratelimit: [rateLimitServiceCases],
  ratelimitHttp: [rateLimitHttpCases],
};

interface Layout {
  /** Those that it has. */
  readonly listeners?: readonly Listener[];
  /** What is booked there. Hotels and cars are booked by the same code, so each of them in one layout is enough. */
  readonly kinds?: readonly BookingKind[];
}

/** A desk of the library, listening. */
export async function addressesOf(desk: Frontdesk): Promise<Desk> {
  const { gateway, auth, ratelimit, ratelimitHttp } = await desk.listen();
  return {
    gatewayUrl: gateway?.url ?? '',
    authUrl: auth?.url ?? '',
    ratelimitUrl: ratelimit?.url ?? '',
    ratelimitHttpUrl: ratelimitHttp?.url ?? '',
    close: desk.close,
  };
}

/** `open` starts the layout once for all cases; it gets the directory of a configuration with quick passwords. */
export function conformance(name: string, open: (config: string) => Promise<Desk>, layout: Layout = {}): void {
  const { listeners = ['gateway', 'auth', 'ratelimit', 'ratelimitHttp'], kinds = [] } = layout;

  describe(`conformance: ${name}`, () => {
    let opened: Desk | undefined;
    const desk = () => {
      if (opened === undefined) throw new Error('the desk is not open');
      return opened;
    };

    after(() => opened?.close());
    const writeFiles = temporaryFiles();

    before(async () => {
      opened = await open(await copyConfig(writeFiles));
    });

    for (const declare of listeners.flatMap((listener) => cases[listener])) declare(desk);
    // Bookings come last, because they change what lists show.
    for (const client of kinds.map((kind) => createBookingClient(desk, kind)))
      for (const declare of [bookingCases, bookingChangeCases, bookingRetryCases]) declare(client);
  });
}
