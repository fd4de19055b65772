/** The unit for systemd: systemd accepts it, its command starts with its environment, and a stop has enough time. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { chmod } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import request from 'supertest';
import { requireSettings } from '#config';
import { settingTable } from '#server/product';
import { serveHere } from '../support/programs/command.ts';
import { describeWith } from '../support/programs/installed.ts';
import { testServers } from '../support/serve.ts';
import { temporaryFiles } from '../support/temporary-files.ts';

const unit = readFileSync(new URL('../../config/deploy/systemd/frontdesk.service', import.meta.url), 'utf8');
const place = '/srv/frontdesk';
const program = `${place}/node_modules/.bin/frontdesk`;

function valuesOf(name: string): readonly string[] {
  return [...unit.matchAll(new RegExp(`^${name}=(.*)$`, 'gm'))].map(([, value = '']) => value);
}

describe('the unit for systemd', () => {
  const servers = testServers();
  const writeFiles = temporaryFiles();
  const [command = ''] = valuesOf('ExecStart');

  it('starts with its command and its environment', async () => {
    const pairs = [
      ...valuesOf('Environment')
        .join(' ')
        .matchAll(/(\w+)=(\S+)/g),
    ];
    const env = Object.fromEntries(pairs.map(([, name = '', value = '']) => [name, value]));
    const [, args = ''] = command.split(`${program} serve `);
    const here = { PORT: '0', ADMIN_PORT: '0', ALLOW_DEMO_USERS: 'true' };
    const { admin } = await serveHere(servers, { args: args.split(' '), env: { ...env, ...here }, cwd: '.' });
    await request(admin.url).get('/readyz').expect(200);
  });

  it('finds the Node that is installed beside frontdesk', () => {
    assert.ok(command.startsWith(program));
    assert.ok(valuesOf('Environment').includes(`PATH=${place}/node_modules/.bin:/usr/local/bin:/usr/bin:/bin`));
  });

  it('allows more time for a stop than a stop may take', () => {
    const { drainMs, shutdownTimeoutMs } = requireSettings(settingTable, {});
    assert.ok(Number(valuesOf('TimeoutStopSec')) * 1000 > drainMs + shutdownTimeoutMs + 1000);
  });

  describeWith('systemd-analyze', 'in systemd', () => {
    let file: string;

    before(async () => {
      const executable = 'node_modules/.bin/frontdesk';
      const directory = await writeFiles({ [executable]: '' });
      await chmod(join(directory, executable), 0o755);
      const text = unit.replaceAll(place, directory);
      file = join(await writeFiles({ 'frontdesk.service': text }), 'frontdesk.service');
    });

    it('has no error and no unknown key', async () => {
      const { stderr } = await promisify(execFile)('systemd-analyze', ['verify', '--man=no', file]);
      assert.equal(stderr, '');
    });

    it('is exposed to little: at most 2 of 10, by the judgement of systemd', async () => {
      await promisify(execFile)('systemd-analyze', ['security', '--offline=true', '--threshold=20', file]);
    });
  });
});
