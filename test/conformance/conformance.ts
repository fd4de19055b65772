/** The source document and the settled points as cases for any desk, however its modules are laid out. */
import { authServiceCases } from './auth-service.ts';
import { authenticationCases } from './authentication.ts';
import { bookingCases } from './bookings.ts';
import { bookingLifeCases } from './bookings-alike.ts';
import { conditionalCases } from './conditional.ts';
import type { Desk } from './desk.ts';
import { diagnosticsCases } from './diagnostics.ts';
import { errorCases } from './errors.ts';
import { listCases } from './lists.ts';
import { methodCases } from './methods.ts';
import { pathCases } from './paths.ts';
import { rateLimitHttpCases } from './rate-limit-http.ts';
import { rateLimitServiceCases } from './rate-limit-service.ts';
import { rateLimitCases } from './rate-limits.ts';
import { representationCases } from './representations.ts';
import { versionCases } from './versions.ts';

/** What a layout may have to offer; each has its own address in `Desk`. */
export type Listener = 'gateway' | 'auth' | 'ratelimit' | 'ratelimitHttp';

const cases = {
  gateway: [
    bookingCases,
    versionCases,
    authenticationCases,
    rateLimitCases,
    pathCases,
    methodCases,
    representationCases,
    errorCases,
    listCases,
    conditionalCases,
    diagnosticsCases,
    // Last, because they leave bookings behind.
    bookingLifeCases,
  ],
  auth: [authServiceCases],
  ratelimit: [rateLimitServiceCases],
  ratelimitHttp: [rateLimitHttpCases],
} as const satisfies Record<Listener, readonly unknown[]>;

const everyListener: readonly Listener[] = ['gateway', 'auth', 'ratelimit', 'ratelimitHttp'];

/** `open` starts the layout, once for all cases; `listeners` are those that it can have at all. */
export function conformance(
  name: string,
  open: () => Promise<Desk>,
  listeners: readonly Listener[] = everyListener,
): void {
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

    after(async () => {
      await opened?.close();
    });

    for (const declare of listeners.flatMap((listener) => cases[listener])) declare(desk);
  });
}
