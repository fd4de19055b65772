/** The rate-limit service alone, for users of another proxy: it needs no records and no database. */
import { cp } from 'node:fs/promises';
import { join } from 'node:path';
import { createFrontdesk } from 'frontdesk';
import { temporaryFiles } from '../support/temporary-files.ts';
import { conformance, openListeners } from './conformance.ts';

describe('with another proxy', () => {
  const writeFiles = temporaryFiles();

  /** Copies only the limits of ./config. The database in the settings does not exist. */
  conformance(
    'the rate-limit service alone',
    async () => {
      const config = await writeFiles();
      await cp('config/ratelimit', join(config, 'ratelimit'), { recursive: true });
      const databaseUrl = 'postgres://nobody@127.0.0.1:1/none';
      const ports = { ratelimitPort: 0, ratelimitHttpPort: 0 };
      return openListeners(await createFrontdesk({ config, only: ['ratelimit'], databaseUrl, ...ports }));
    },
    { listeners: ['ratelimit', 'ratelimitHttp'] },
  );
});
