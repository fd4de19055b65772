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
    assert.deepEqual([configuration.users, errors], [[{ name: 'Zoe', passwordHash: phc, roles: [], apiKeys: [] }], []]);
  });

  it('that are invalid or ambiguous are left out, and do not lock out the others', () => {
    const valid = (name: string) => ({ name, password_hash: phc });
    const users = [valid('a'), { name: 'b' }, 'c', valid('a'), valid('d')];
    const { configuration, errors } = configurationFrom(untyped({ records: [], users }));
    assert.deepEqual(configuration.users, [{ name: 'd', passwordHash: phc, roles: [], apiKeys: [] }]);
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

describe('API keys of users', () => {
  const digest = (digit: string) => digit.repeat(64);
  const read = (...users: readonly object[]) => configurationFrom(untyped({ records: [], users }));
  const messagesOf = (...users: readonly object[]) =>
    read(...users).errors.map(({ record, message, remedy }) => `${record}: ${message}. ${remedy}`);

  it('are read with name and digest, and a user who has some needs no password', () => {
    const api_keys = [
      { name: 'ci', sha256: digest('a') },
      { name: 'laptop-2', sha256: digest('b') },
    ];
    const { configuration, errors } = read({ name: 'bot', api_keys });
    const bot = { name: 'bot', passwordHash: undefined, roles: [], apiKeys: api_keys };
    assert.deepEqual([configuration.users, errors], [[bot], []]);
  });

  it('are one of the two things that a user must have', () => {
    const [message = ''] = messagesOf({ name: 'bot', api_keys: [] });
    assert.match(message, /^User bot: password_hash is missing\. .*give the user a key: frontdesk users add-key$/);
  });

  for (const [what, api_keys, expected] of [
    ['a key itself', [{ name: 'ci', sha256: 'fd_hunter2' }], /api_keys\[0\]\.sha256 is not a SHA-256 digest .*add-key/],
    ['a key under another name', [{ name: 'ci', key: 'fd_hunter2' }], /key .*Never write a key itself/],
    ['upper-case digits', [{ name: 'ci', sha256: digest('A') }], /lower-case/],
    ['no digest', [{ name: 'ci' }], /sha256 is missing/],
    ['a name with a space', [{ name: 'c i', sha256: digest('a') }], /api_keys\[0\]\.name is not a word/],
    ['two keys with one name', ['a', 'b'].map((one) => ({ name: 'ci', sha256: digest(one) })), /a name for two keys/],
    ['a key twice', ['a', 'b'].map((name) => ({ name, sha256: digest('a') })), /lists a key twice/],
    [
      'more than 16 keys',
      Array.from({ length: 17 }, (_, index) => ({ name: `k${index}`, sha256: index.toString(16).padStart(64, '0') })),
      /lists 17 keys, and at most 16/,
    ],
  ] as const)
    it(`cannot be ${what}, and the message has a remedy and no secret`, () => {
      const messages = messagesOf({ name: 'bot', api_keys }).join('\n');
      assert.match(messages, expected);
      assert.match(messages, /^User bot: /);
      assert.doesNotMatch(messages, /hunter2/);
    });

  it('that two users share are errors of both, and neither can sign in', () => {
    const user = (name: string, sha256: string) => ({ name, api_keys: [{ name: `of-${name}`, sha256 }] });
    const users = [user('ann', digest('a')), user('bob', digest('a')), user('eve', digest('c'))];
    const { configuration, errors } = read(...users);
    assert.deepEqual(
      configuration.users.map(({ name }) => name),
      ['eve'],
    );
    assert.deepEqual(errors.map(({ source: { line }, record, message }) => `${line} ${record}: ${message}`).sort(), [
      '1 User ann: another user has the same key as the one named of-ann',
      '2 User bob: another user has the same key as the one named of-bob',
    ]);
  });

  it('are accepted by createUsers exactly if the configuration check accepts them', () => {
    const accept = (apiKeys: readonly { name: string; sha256: string }[]) => createUsers([{ name: 'bot', apiKeys }]);
    const users = accept([{ name: 'ci', sha256: digest('a') }]);
    assert.deepEqual(users.ownerOfKey?.(digest('a')), { user: 'bot', key: 'ci' });
    assert.equal(users.ownerOfKey?.(digest('b')), undefined);
    assert.equal(users.find('bot'), undefined);
    for (const [name, sha256] of [
      ['c i', digest('a')],
      ['ci', 'fd_hunter2'],
    ] as const)
      assert.throws(
        () => accept([{ name, sha256 }]),
        ({ message }: Error) => !message.includes('hunter2'),
      );
    const same = [{ name: 'ci', sha256: digest('a') }];
    assert.throws(
      () =>
        createUsers([
          { name: 'a', apiKeys: same },
          { name: 'b', apiKeys: same },
        ]),
      /another user also has the key ci/,
    );
    assert.throws(() => accept([]), /password hash is not usable|not a usable scrypt/);
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
      const [, , , salt = '', hash] = (passwordHash ?? '').split('$');
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
    const own = [{ name: 'demo', passwordHash: '$scrypt$ln=14,r=8,p=1$AAAA$BBBB', roles: [], apiKeys: [] }];
    assert.deepEqual(exposedDemoUsers({ host: '0.0.0.0', allowDemoUsers: false }, own), []);
  });
});
