/** Everything in one process, as `npm start` has it. */
import { createFrontdesk } from 'frontdesk';
import { cars, hotels } from './booking-client.ts';
import { addressesOf, conformance } from './conformance.ts';

conformance(
  'one process',
  async () => {
    const ports = { port: 0, authPort: 0, ratelimitPort: 0, ratelimitHttpPort: 0 };
    return addressesOf(await createFrontdesk({ databaseUrl: 'sqlite::memory:', demo: true, ...ports }));
  },
  { kinds: [hotels, cars], isReference: true },
);
