/** All modules in one process with several threads, which share the ports and a database file. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { startServer } from '../support/programs/frontdesk-process.ts';
import { cars } from './booking-client.ts';
import { conformance } from './conformance.ts';

conformance(
  'one process with two threads',
  async (config) => {
    const DATABASE_URL = `sqlite:${join(config, 'frontdesk.db')}`;
    const server = await startServer(['--demo'], { env: { CONFIG_DIR: config, THREADS: '2', DATABASE_URL } });
    return {
      ...server,
      async close() {
        const { code, stderr } = await server.stop();
        assert.deepEqual({ code, stderr }, { code: 0, stderr: '' });
      },
    };
  },
  { kinds: [cars] },
);
