/** Each module in a process of its own, with the same records, as with `npm run start:split`. */
import assert from 'node:assert/strict';
import { startSplit } from '../support/programs/frontdesk-process.ts';
import { cars } from './booking-client.ts';
import { conformance } from './conformance.ts';

conformance(
  'separate processes',
  async (config) => {
    const server = await startSplit(['--demo'], { env: { CONFIG_DIR: config } });
    for (const name of ['gateway', 'rate limits', 'rate limits \\(HTTP\\)', 'auth', 'hotel', 'car', 'api'])
      assert.match(server.stdout(), new RegExp(`^ {2}${name} +(http|grpc)://127\\.0\\.0\\.1:\\d+$`, 'm'));
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
