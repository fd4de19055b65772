/** Everything in one process, as `npm start` has it; the gateway asks for limits over gRPC. */
import { startServer } from '../support/programs/frontdesk-process.ts';
import { cars, hotels } from './booking-client.ts';
import { conformance } from './conformance.ts';

conformance(
  'one process',
  async () => {
    const { stop, ...addresses } = await startServer(['--demo']);
    return { ...addresses, close: async () => void (await stop()) };
  },
  { kinds: [hotels, cars] },
);
