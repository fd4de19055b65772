/** Everything in one process, as `npm start` has it. */
import { createFrontdesk } from 'frontdesk';
import { cars, hotels } from './booking-client.ts';
import { conformance } from './conformance.ts';

conformance(
  'one process',
  async () => {
    const ports = { port: 0, authPort: 0, ratelimitPort: 0, ratelimitHttpPort: 0 };
    const desk = await createFrontdesk({ databaseUrl: 'sqlite::memory:', demo: true, ...ports });
    const { gateway, auth, ratelimit, ratelimitHttp } = await desk.listen();
    return {
      gatewayUrl: gateway?.url ?? '',
      authUrl: auth?.url ?? '',
      ratelimitUrl: ratelimit?.url ?? '',
      ratelimitHttpUrl: ratelimitHttp?.url ?? '',
      close: desk.close,
    };
  },
  { kinds: [hotels, cars] },
);
