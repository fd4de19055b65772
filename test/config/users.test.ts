/** Users and their password hashes, and the published users of the demo; the golden files have the wording of each refusal. */
import assert from 'node:assert/strict';
import { scryptSync } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { configurationFrom, exposedDemoUsers, loadConfiguration, type User } from '#config';

const salt = 'A'.repeat(22);
const hash = 'B'.repeat(43);
const phc = `$scrypt$ln=14,r=8,p=1$${salt}$${hash}`;

describe('users', () => {
  it('are read by name and hash', () => {
    const { configuration, errors } = configurationFrom({ records: [], users: [{ name: 'Zoë', password_hash: phc }] });
    assert.deepEqual([configuration.users, errors], [[{ name: 'Zoë', passwordHash: phc }], []]);
  });

  it('that cannot be used do not lock the others out', () => {
    const users = [{ name: 'a', password_hash: phc }, { name: 'b' }, 'c', { name: 'a', password_hash: phc }];
    const { configuration, errors } = configurationFrom({ records: [], users });
    assert.deepEqual(configuration.users, [{ name: 'a', passwordHash: phc }]);
    assert.deepEqual(
      errors.map(({ source: { line }, record, message }) => [line, record, message]),
      [
        [2, 'User b', 'password_hash is missing'],
        [3, 'User', 'the document must be a map, not a string'],
        [4, 'User a', 'there is already a user of this name'],
      ],
    );
  });

  function check(password_hash: unknown, accepted: boolean): void {
    it(`${accepted ? 'take' : 'refuse'} the hash ${String(password_hash)}`, () => {
      const { errors } = configurationFrom({ records: [], users: [{ name: 'a', password_hash }] });
      assert.equal(errors.length === 0, accepted);
      assert.doesNotMatch(errors[0]?.message ?? '', /hunter2|12345/);
    });
  }

  check(phc, true);
  check(`$scrypt$ln=20,r=8,p=16$${salt}$${hash}`, true);
  for (const costs of ['ln=21,r=8,p=1', 'ln=14,r=0,p=1', 'ln=14,r=8,p=17', 'ln=14,r=8'])
    check(`$scrypt$${costs}$${salt}$${hash}`, false);
  check(`$scrypt$ln=14,r=8,p=1$${salt}$`, false);
  check(`$argon2id$v=19$m=65536,t=2,p=1$${salt}$${hash}`, false);
  for (const other of [`${phc}\n`, 'hunter2', 12345]) check(other, false);

  for (const name of ['', 'a:b', 'a\nb', 'a\0', '\u0085']) {
    it(`refuse the name ${JSON.stringify(name)}, which HTTP Basic cannot carry`, () => {
      const { configuration } = configurationFrom({ records: [], users: [{ name, password_hash: phc }] });
      assert.deepEqual(configuration.users, []);
    });
  }
});

describe('the demo users', () => {
  let users: readonly User[] = [];

  before(async () => {
    ({ users } = (await loadConfiguration(fileURLToPath(new URL('../../config', import.meta.url)))).configuration);
  });

  it('have their names as passwords', () => {
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

  for (const [host, allowDemoUsers, expected] of [
    ['127.0.0.1', false, []],
    ['localhost', false, []],
    ['0.0.0.0', false, ['demo', 'guest']],
    ['::', false, ['demo', 'guest']],
    ['travel.example', false, ['demo', 'guest']],
    ['0.0.0.0', true, []],
  ] as const)
    it(`on ${host} are ${expected.length > 0 ? 'refused' : 'accepted'}${allowDemoUsers ? ' when allowed' : ''}`, () => {
      assert.deepEqual(exposedDemoUsers({ host, allowDemoUsers }, users), expected);
    });

  it('are known by their hashes, so that a real user may be named demo', () => {
    const own = [{ name: 'demo', passwordHash: '$scrypt$ln=14,r=8,p=1$AAAA$BBBB' }];
    assert.deepEqual(exposedDemoUsers({ host: '0.0.0.0', allowDemoUsers: false }, own), []);
  });
});
