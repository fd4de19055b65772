/** WebDAV behind the gateway: the results of `litmus` are the same as without the gateway. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { authRecord } from '../support/desks.ts';
import { isInstalled } from '../support/programs/installed.ts';
import { testServers } from '../support/serve.ts';
import { temporaryFiles } from '../support/temporary-files.ts';
import { python, recipeRecord, startFront, startPython } from './front.ts';

describe('WebDAV behind the gateway', function () {
  if (python === undefined || !isInstalled('litmus')) {
    it('needs TEST_PYTHON with wsgidav, and litmus on the PATH');
    return;
  }

  this.timeout(120_000);
  const servers = testServers(after);
  const writeFiles = temporaryFiles();

  /** Returns one line per litmus test. It leaves files behind, so it runs in a temporary directory. */
  async function litmus(...args: readonly string[]): Promise<readonly string[]> {
    const failed = ({ stdout }: { stdout: string }) => ({ stdout });
    const { stdout } = await promisify(execFile)('litmus', ['-k', ...args], { cwd: await writeFiles() }).catch(failed);
    return stdout.split('\n').flatMap((line) => line.split('\r').at(-1) ?? []);
  }

  it('passes the same litmus tests as without the gateway', async () => {
    const [direct, behind] = [
      await startPython(servers, 'dav-site.py', await writeFiles()),
      await startPython(servers, 'dav-site.py', await writeFiles()),
    ];
    const { port } = await startFront(servers, recipeRecord('files', behind, { host: 'localhost' }), authRecord);
    const [expected, seen] = await Promise.all([
      litmus(`${direct.origin}/`),
      litmus(`http://localhost:${port}/`, 'ann', 'secret'),
    ]);
    assert.deepEqual(seen, expected);
    assert.ok(expected.filter((line) => line.endsWith('pass')).length > 90, expected.join('\n'));
  });
});
