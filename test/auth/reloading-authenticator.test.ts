/** Users who come and go under an authenticator that answers. */
import assert from 'node:assert/strict';
import { createReloadingAuthenticator, createUsers, formatBasic, hashPassword } from '#auth';

describe('createReloadingAuthenticator', () => {
  const store = async (name: string) => createUsers([{ name, passwordHash: await hashPassword('sesame') }]);

  it('judges by the users of the day, also whom it remembers', async () => {
    const { authenticate, reload } = createReloadingAuthenticator({ users: await store('ann') });
    assert.deepEqual(await authenticate(formatBasic('ann', 'sesame')), { kind: 'user', name: 'ann' });
    reload(await store('bob'));
    assert.deepEqual(await authenticate(formatBasic('ann', 'sesame')), { kind: 'wrong' });
    assert.deepEqual(await authenticate(formatBasic('bob', 'sesame')), { kind: 'user', name: 'bob' });
  });
});
