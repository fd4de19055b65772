/** A process for each module, with the same records: `npm run start:split`. */
import { startSplit } from '../support/programs/frontdesk-process.ts';
import { conformance } from './conformance.ts';

conformance('separate processes', async () => {
  const server = await startSplit();
  return { ...server, close: async () => void (await server.stop()) };
});
