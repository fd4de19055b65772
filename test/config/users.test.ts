/** Tests users, their password hashes and the demo users. The golden files cover the wording of the errors. */
import assert from 'node:assert/strict';
import { scryptSync } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';
import { createUsers } from '#auth';
import { encodeUnpadded } from '#auth/password-hash';
import { configurationFrom, loadConfiguration, type User } from '#config';
import { exposedDemoUsers } from '../../src/config/users.ts';
import { anyCharacter } from '../support/any-character.ts';
import { untyped } from '../support/untyped.ts';

const salt = 'A'.repeat(22);
const hash = 'A'.repeat(43);
const phc = `$scrypt$ln=14,r=8,p=1$${salt}$${hash}`;

describe('users', () => {
  it('are read with name and hash', () => {
    const { configuration, errors } = configurationFrom({ records: [], users: [{ name: 'Zoe', password_hash: phc }] });
    assert.deepEqual([configuration.users, errors], [[{ name: 'Zoe', passwordHash: phc, roles: [] }], []]);
  });

  it('that are invalid or ambiguous are left out, and do not lock out the others', () => {
    const valid = (name: string) => ({ name, password_hash: phc });
    const users = [valid('a'), { name: 'b' }, 'c', valid('a'), valid('d')];
    const { configuration, errors } = configurationFrom(untyped({ records: [], users }));
    assert.deepEqual(configuration.users, [{ name: 'd', passwordHash: phc, roles: [] }]);
    assert.deepEqual(
      errors.map(({ source: { line }, record, message }) => [line, record, message]),
      [
        [2, 'User b', 'password_hash is missing'],
        [3, 'User', 'the entry must be a map, not a string'],
        [4, 'User a', 'another user already has this name'],
      ],
    );
  });

  const errorsOf = (user: object) =>
    configurationFrom(untyped({ records: [], users: [{ name: 'a', ...user }] })).errors;

  it('can have hashes of the highest cost', () => {
    assert.deepEqual(errorsOf({ password_hash: `$scrypt$ln=20,r=8,p=16$${salt}$${hash}` }), []);
  });

  for (const password_hash of [`$argon2id$v=19$m=65536,t=2,p=1$${salt}$${hash}`, `${phc}\n`, 'hunter2', 12345])
    it(`cannot have the hash ${password_hash}, which the message does not quote`, () => {
      const [error] = errorsOf({ password_hash });
      assert.match(error?.message ?? '', /^password_hash /);
      assert.doesNotMatch(error?.message ?? '', /hunter2|12345/);
    });

  it('cannot have a name that HTTP Basic or the identity header cannot transmit', () => {
    for (const name of ['', 'a:b', 'a\nb', 'a\0', '\u0085', 'j\u00fcrgen', ' ann', 'ann '])
      assert.equal(errorsOf({ name, password_hash: phc }).length, 1, JSON.stringify(name));
  });

  it('are accepted by the auth service exactly if the configuration check accepts them', () => {
    const base64 = fc.uint8Array({ maxLength: 70 }).map(encodeUnpadded);
    const cost = fc.tuple(fc.nat(22), fc.nat(34), fc.nat(18)).map(([ln, r, p]) => `ln=${ln},r=${r},p=${p}`);
    const hashes = fc.tuple(cost, base64, base64).map(([costs, ...parts]) => `$scrypt$${costs}$${parts.join('$')}`);
    const name = fc.oneof(fc.string({ maxLength: 4 }), fc.string({ unit: anyCharacter, maxLength: 4 }));
    fc.assert(
      fc.property(name, fc.oneof(fc.constant(phc), hashes), (name, password_hash) => {
        const accepts = () => void createUsers([{ name, passwordHash: password_hash }]);
        if (errorsOf({ name, password_hash }).length === 0) accepts();
        else assert.throws(accepts);
      }),
      { numRuns: 200 },
    );
  });
});

describe('the demo users', () => {
  let users: readonly User[] = [];

  before(async () => {
    ({ users } = (await loadConfiguration(fileURLToPath(new URL('../../config', import.meta.url)))).configuration);
  });

  it('use their names as passwords', () => {
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

  it('are rejected on a server that is open to the network, unless they are allowed', () => {
    const exposedOn = (host: string, allowDemoUsers = false) => exposedDemoUsers({ host, allowDemoUsers }, users);
    for (const host of ['127.0.0.1', 'localhost']) assert.deepEqual(exposedOn(host), []);
    for (const host of ['0.0.0.0', '::', 'travel.example']) assert.deepEqual(exposedOn(host), ['demo', 'guest']);
    assert.deepEqual(exposedOn('0.0.0.0', true), []);
    const auth = { host: '127.0.0.1', authHost: '0.0.0.0', allowDemoUsers: false };
    assert.deepEqual(exposedDemoUsers(auth, users), ['demo', 'guest']);
  });

  it('are identified by their hashes, so that a real user can be named demo', () => {
    const own = [{ name: 'demo', passwordHash: '$scrypt$ln=14,r=8,p=1$AAAA$BBBB', roles: [] }];
    assert.deepEqual(exposedDemoUsers({ host: '0.0.0.0', allowDemoUsers: false }, own), []);
  });
});
