/** The demo users never face the world unless somebody says so. */
import assert from 'node:assert/strict';
import { scryptSync } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { exposedDemoUsers, loadConfiguration } from '#config';

async function demoUsers() {
  const { configuration } = await loadConfiguration(fileURLToPath(new URL('../../config', import.meta.url)));
  return configuration.users;
}

describe('the demo users', () => {
  it('have their names as passwords', async () => {
    const users = await demoUsers();
    assert.deepEqual(
      users.map(({ name }) => name),
      ['demo', 'guest'],
    );
    for (const { name, passwordHash } of users) {
      const [, , , salt = '', hash] = passwordHash.split('$');
      const derived = scryptSync(name, Buffer.from(salt, 'base64'), 32, { N: 2 ** 14, r: 8, p: 1 });
      assert.equal(derived.toString('base64').replace(/=+$/, ''), hash);
    }
  });

  function check(host: string, allowDemoUsers: boolean, expected: readonly string[]): void {
    it(`on ${host}${allowDemoUsers ? ', allowed,' : ''} ${expected.length > 0 ? 'are in the way' : 'are fine'}`, async () => {
      assert.deepEqual(exposedDemoUsers({ host, allowDemoUsers }, await demoUsers()), expected);
    });
  }

  check('127.0.0.1', false, []);
  check('localhost', false, []);
  check('0.0.0.0', false, ['demo', 'guest']);
  check('::', false, ['demo', 'guest']);
  check('travel.example', false, ['demo', 'guest']);
  check('0.0.0.0', true, []);

  it('are known by their hashes, so that a real user may be named demo', () => {
    const own = [{ name: 'demo', passwordHash: '$scrypt$ln=14,r=8,p=1$AAAA$BBBB' }];
    assert.deepEqual(exposedDemoUsers({ host: '0.0.0.0', allowDemoUsers: false }, own), []);
  });
});
