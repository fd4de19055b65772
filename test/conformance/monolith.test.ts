/** Everything in one process, as `npm start` has it. */
import { createFrontdesk } from 'frontdesk';
import { hotels } from './booking-client.ts';
import { addressesOf, conformance } from './conformance.ts';

conformance(
  'one process',
  async (config) => {
    const ports = { port: 0, authPort: 0, ratelimitPort: 0, ratelimitHttpPort: 0 };
    return addressesOf(await createFrontdesk({ config, databaseUrl: 'sqlite::memory:', demo: true, ...ports }));
  },
  { listeners: ['reference', 'auth', 'ratelimit', 'ratelimitHttp'], kinds: [hotels] },
);
