/** Users from a file, without a gateway. */
import assert from 'node:assert/strict';
import { createAuthenticator, createUsers, hashPassword, loadUsers } from '#auth';
import { temporaryFiles } from '../support/temporary-files.ts';

describe('loadUsers', () => {
  const writeFiles = temporaryFiles();

  it('reads the users of a directory, who can then sign in', async () => {
    const users = [{ name: 'ann', password_hash: await hashPassword('secret') }];
    const directory = await writeFiles({ 'users.yaml': JSON.stringify({ users }) });
    const authenticator = createAuthenticator({ users: createUsers(await loadUsers(directory)) });
    assert.equal((await authenticator.authenticate(`Basic ${btoa('ann:secret')}`))?.name, 'ann');
  });

  it('rejects a directory with errors, and lists each with its file and fix', async () => {
    const directory = await writeFiles({ 'users.yaml': JSON.stringify({ users: [{ name: 'ann' }] }) });
    await assert.rejects(loadUsers(directory), /users\.yaml:1 .*User ann: password_hash is missing/);
  });
});
