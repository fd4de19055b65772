/** The rate-limit service alone, for users who have a proxy already: no records, and no database. */
import { cp } from 'node:fs/promises';
import { join } from 'node:path';
import { createFrontdesk } from 'frontdesk';
import { temporaryFiles } from '../support/temporary-files.ts';
import { addressesOf, conformance } from './conformance.ts';

describe('a proxy of another kind', () => {
  const writeFiles = temporaryFiles();

  /** With the limits of ./config and nothing else of it; the database that the settings name does not exist. */
  conformance(
    'the rate-limit service alone',
    async () => {
      const config = await writeFiles();
      await cp('config/ratelimit', join(config, 'ratelimit'), { recursive: true });
      const databaseUrl = 'postgres://nobody@127.0.0.1:1/none';
      const ports = { ratelimitPort: 0, ratelimitHttpPort: 0 };
      return addressesOf(await createFrontdesk({ config, only: ['ratelimit'], databaseUrl, ...ports }));
    },
    { listeners: ['ratelimit', 'ratelimitHttp'] },
  );
});
