/** The conformance suite: black-box tests that every layout of a desk's modules must pass. */
import { appendFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Frontdesk } from 'frontdesk';
import { copyConfig } from '../support/desks.ts';
import { temporaryFiles } from '../support/temporary-files.ts';
import { eventually } from '../support/waiting.ts';
import { authenticationCases, authServiceCases } from './authentication.ts';
import { bookingChangeCases } from './booking-changes.ts';
import { type BookingKind, createBookingClient } from './booking-client.ts';
import { bookingRetryCases } from './booking-retries.ts';
import { bookingCases } from './bookings.ts';
import { callAsDemo, type Desk, type OpenDesk } from './desk.ts';
import { diagnosticsCases } from './diagnostics.ts';
import { errorCases } from './errors.ts';
import { listCases } from './lists.ts';
import { pathCases } from './paths.ts';
import { rateLimitCases, rateLimitHttpCases, rateLimitServiceCases } from './rate-limits.ts';
import { representationCases } from './representations.ts';
import { responseCases } from './responses.ts';
import { versionCases } from './versions.ts';

/**
 * The listeners that a layout may have. `mounted` is a gateway below a path of a host app. `reference` is the gateway
 * of a single process. It runs all gateway tests; the others run a few and compare complete responses with it, as
 * `compared` does alone.
 */
export type Listener = 'reference' | 'compared' | 'gateway' | 'mounted' | 'auth' | 'ratelimit' | 'ratelimitHttp';

/** Tests of what could change when modules run in other processes. */
const gatewayCases = [authenticationCases, rateLimitCases, diagnosticsCases];
/** Tests of what a mount path or the host's middleware could change: paths, redirects and errors. */
const mountCases = [versionCases, pathCases, errorCases];

const cases: Readonly<Record<Listener, readonly ((desk: OpenDesk) => void)[]>> = {
  reference: [...gatewayCases, representationCases, ...mountCases, listCases],
  compared: [responseCases],
  gateway: [...gatewayCases, responseCases],
  mounted: [...mountCases, responseCases],
  auth: [authServiceCases],
  ratelimit: [rateLimitServiceCases],
  ratelimitHttp: [rateLimitHttpCases],
};

interface Layout {
  /** @default all but `reference` and `mounted` */
  readonly listeners?: readonly Listener[];
  /** The kinds of bookings to test. The same code books hotels and cars, so one layout for each is enough. */
  readonly kinds?: readonly BookingKind[];
}

/** Opens the listeners of a desk. */
export async function openListeners(desk: Frontdesk): Promise<Desk> {
  const { gateway, auth, ratelimit, ratelimitHttp } = await desk.listen();
  return {
    gatewayUrl: gateway?.url ?? '',
    authUrl: auth?.url ?? '',
    ratelimitUrl: ratelimit?.url ?? '',
    ratelimitHttpUrl: ratelimitHttp?.url ?? '',
    close: desk.close,
  };
}

/** Runs the suite. `open` starts the layout once, with a configuration directory whose password hashes are fast. */
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
      const config = await copyConfig(writeFiles);
      // On a busy machine, a limiter in another process can take longer than the default of 100 ms.
      await appendFile(join(config, 'services', 'ratelimit.yaml'), '      timeout_ms: 5000\n');
      opened = await open(config);
      // Until the gateway is connected to its limiter, it lets requests pass uncounted.
      if (opened.gatewayUrl !== '')
        await eventually(() => callAsDemo(desk, '/v1/hotels').expect('RateLimit', /"x-travel-user"/));
    });

    for (const declare of listeners.flatMap((listener) => cases[listener])) declare(desk);
    // Bookings run last, because they change the contents of lists.
    for (const client of kinds.map((kind) => createBookingClient(desk, kind)))
      for (const declare of [bookingCases, bookingChangeCases, bookingRetryCases]) declare(client);
  });
}
