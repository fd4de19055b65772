/** git behind the gateway: clones and pushes to `git http-backend`, with a password of the gateway. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chmod, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { authRecord } from '../support/desks.ts';
import { cgiHost } from '../support/programs/cgi-host.ts';
import { describeWith } from '../support/programs/installed.ts';
import { testServers } from '../support/serve.ts';
import { temporaryFiles } from '../support/temporary-files.ts';
import { recipeRecord, startFront } from './front.ts';

/** The size of random data, which git cannot compress. git sends more than 1 MB with chunked encoding. */
const pushedBytes = 8 * 1024 * 1024;
/** Longer than the default `timeout_ms` of a mapping, 3 s. */
const hookSeconds = 3.5;

describeWith('git', 'git behind the gateway', function () {
  this.timeout(120_000);
  const servers = testServers(after);
  const writeFiles = temporaryFiles();
  let directory: string;
  let remote: string;

  before(async () => {
    directory = await writeFiles({ 'seed/readme': 'the beginning' });
    await git('init', 'seed');
    await commit('seed', 'readme');
    await git('clone', '--bare', 'seed', 'project.git');
    const hook = join(directory, 'project.git/hooks/post-receive');
    await writeFile(hook, `#!/bin/sh\nsleep ${hookSeconds}\necho 'the hook has finished'\n`);
    await chmod(hook, 0o755);
    const variables = { GIT_PROJECT_ROOT: directory, GIT_HTTP_EXPORT_ALL: '1' };
    const app = await servers.http(cgiHost(['git', 'http-backend'], variables, 'x-travel-user'));
    const { port } = await startFront(servers, recipeRecord('git', app), authRecord);
    remote = `127.0.0.1:${port}/git/project.git`;
  });

  async function git(...args: readonly string[]): Promise<string> {
    const env = {
      PATH: process.env['PATH'],
      HOME: directory,
      GIT_CONFIG_NOSYSTEM: '1',
      GIT_TERMINAL_PROMPT: '0',
      GIT_AUTHOR_NAME: 'ann',
      GIT_AUTHOR_EMAIL: 'ann@example.com',
      GIT_COMMITTER_NAME: 'ann',
      GIT_COMMITTER_EMAIL: 'ann@example.com',
    };
    // Random data does not get smaller, so skip compression.
    const { stdout, stderr } = await promisify(execFile)('git', ['-c', 'core.compression=0', ...args], {
      cwd: directory,
      env,
    });
    return stdout + stderr;
  }

  async function commit(repository: string, file: string): Promise<void> {
    await git('-C', repository, 'add', file);
    await git('-C', repository, 'commit', '-m', file);
  }

  it('clones, and pushes 8 MB to a repository with a slow hook', async () => {
    await git('clone', `http://ann:secret@${remote}`, 'mine');
    assert.equal(await readFile(join(directory, 'mine/readme'), 'utf8'), 'the beginning');
    await writeFile(join(directory, 'mine/noise'), randomBytes(pushedBytes));
    await commit('mine', 'noise');
    assert.match(await git('-C', 'mine', 'push', 'origin', 'HEAD'), /the hook has finished/);
    const name = 'HEAD:noise';
    assert.equal(await git('-C', 'project.git', 'rev-parse', name), await git('-C', 'mine', 'rev-parse', name));
  });

  it('is denied without a password of the gateway', async () => {
    await assert.rejects(git('ls-remote', `http://${remote}`), /could not read Username/);
    await assert.rejects(git('ls-remote', `http://ann:wrong@${remote}`), /Authentication failed/);
  });
});
