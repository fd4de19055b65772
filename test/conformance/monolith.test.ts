/** All modules in one process, as with `npm start`. */
import { createFrontdesk } from 'frontdesk';
import { hotels } from './booking-client.ts';
import { conformance, openListeners } from './conformance.ts';

conformance(
  'one process',
  async (config) => {
    const ports = { port: 0, authPort: 0, ratelimitPort: 0, ratelimitHttpPort: 0 };
    return openListeners(await createFrontdesk({ config, databaseUrl: 'sqlite::memory:', demo: true, ...ports }));
  },
  { listeners: ['reference', 'auth', 'ratelimit', 'ratelimitHttp'], kinds: [hotels] },
);
