/** The rate-limit service alone, for users who have a proxy already: no records, and no database. */
import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startServer } from '../support/programs/frontdesk-process.ts';
import { conformance } from './conformance.ts';

/** With the limits of ./config and nothing else of it; the database that the settings name does not exist. */
conformance(
  'the rate-limit service alone',
  async () => {
    const directory = await mkdtemp(join(tmpdir(), 'frontdesk-'));
    await cp('config/ratelimit', join(directory, 'ratelimit'), { recursive: true });
    const env = { CONFIG_DIR: directory, DATABASE_URL: 'postgres://nobody@127.0.0.1:1/none' };
    const { stop, ...addresses } = await startServer(['--only', 'ratelimit'], { env });
    return {
      ...addresses,
      async close() {
        await stop();
        await rm(directory, { recursive: true });
      },
    };
  },
  { listeners: ['ratelimit', 'ratelimitHttp'] },
);
