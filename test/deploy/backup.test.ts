/** The commands for backups: a copy that is made while frontdesk runs restores the bookings of that moment. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { cp } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import request from 'supertest';
import { createPostgresDatabase } from '../support/databases.ts';
import { type Server, startServer } from '../support/programs/frontdesk-process.ts';
import { isInstalled } from '../support/programs/installed.ts';
import { testServers } from '../support/serve.ts';
import { temporaryFiles } from '../support/temporary-files.ts';

const page = readFileSync(new URL('../../config/deploy/README.md', import.meta.url), 'utf8');
const section = page.split(/^## Backup$/m)[1]?.split(/^## /m)[0] ?? '';
const [backUpFile = '', restoreFile = '', dump = '', restoreDump = ''] = [
  ...section.matchAll(/^```sh\n(.*?)^```$/gms),
].map(([, commands = '']) => commands);

const demo = fileURLToPath(new URL('../../config', import.meta.url));
const stay = { hotel_id: 'bdd640fb-0667-4ad1-9c80-317fa3b1799d' };
const bookings = '/v1/hotels/bookings/';

describe('a backup', () => {
  const servers = testServers();
  const writeFiles = temporaryFiles();
  let directory: string;

  beforeEach(async () => {
    directory = await writeFiles();
    await cp(demo, join(directory, 'config'), { recursive: true });
  });

  it('of SQLite restores the bookings that there were when it was made', async function () {
    if (!isInstalled('sqlite3')) this.skip();
    await restoresBookings({ backUp: backUpFile, restore: restoreFile, databaseUrl: 'sqlite:./data/frontdesk.db' });
  });

  it('of PostgreSQL restores the bookings that there were when it was made', async function () {
    const { TEST_POSTGRES_URL: server } = process.env;
    if (server === undefined || !isInstalled('pg_dump')) return this.skip();
    const { url, remove } = await createPostgresDatabase(server);
    servers.later(remove);
    await restoresBookings({ backUp: dump, restore: restoreDump, databaseUrl: url });
    return undefined;
  });

  async function restoresBookings({ backUp, restore, databaseUrl }: Readonly<Record<string, string>>): Promise<void> {
    assert.ok(backUp && restore && databaseUrl);
    const run = (commands: string) =>
      promisify(execFile)('sh', ['-euc', commands], {
        cwd: directory,
        env: { ...process.env, DATABASE_URL: databaseUrl },
      });
    const before = await start(databaseUrl);
    await book(before);
    const saved = await countBookings(before);
    await run(backUp);
    await book(before);
    assert.equal(await countBookings(before), saved + 1);
    await before.stop();
    await run(restore);
    assert.equal(await countBookings(await start(databaseUrl)), saved);
  }

  async function start(databaseUrl: string): Promise<Server> {
    const server = await startServer(['--demo'], { cwd: directory, env: { DATABASE_URL: databaseUrl } });
    servers.later(server.stop);
    return server;
  }

  async function book({ gatewayUrl }: Server): Promise<void> {
    await request(gatewayUrl).post(bookings).auth('demo', 'demo').send(stay).expect(201);
  }

  async function countBookings({ gatewayUrl }: Server): Promise<number> {
    const { body } = await request(gatewayUrl).get(bookings).auth('demo', 'demo').expect(200);
    return body.total;
  }
});
