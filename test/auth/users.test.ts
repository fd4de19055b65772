/** The user store: look-up, error messages for invalid users, password hashes, and dummy hashes for unknown names. */
import assert from 'node:assert/strict';
import { scryptSync } from 'node:crypto';
import { createUsers, hashPassword } from '#auth';
import { type PasswordHash, parsePasswordHash, type ScryptCost } from '#auth/password-hash';
import { formatBasic, parseBasic } from '../../src/auth/authenticator.ts';
import { verifyPassword } from '../../src/auth/users.ts';

const phc = (cost: string, letter = 'A') => `$scrypt$${cost}$${letter.repeat(22)}$${letter.repeat(43)}`;
const passwordHash = phc('ln=14,r=8,p=1');

describe('createUsers', () => {
  it('finds a user by the exact name', () => {
    const users = createUsers([{ name: 'demo', passwordHash }]);
    assert.deepEqual(users.find('demo')?.cost, { ln: 14, r: 8, p: 1 });
    for (const name of ['Demo', 'demo ', '', 'guest', '__proto__', 'constructor', 'toString'])
      assert.equal(users.find(name), undefined, name);
  });

  it('accepts names that can be sent in a header', () => {
    for (const name of ['a', 'demo', 'Jane Doe', 'jane@example.org', '100%', '__proto__', 'x'.repeat(64)])
      assert.ok(createUsers([{ name, passwordHash }]).find(name), name);
  });

  it('rejects names that cannot be sent in a header or that another server would parse differently', () => {
    for (const name of ['', 'J\u00fcrgen', '\u738b', ' demo', 'demo ', 'de\nmo', 'de\0mo', 'de:mo'])
      assert.throws(
        () => createUsers([{ name, passwordHash }]),
        /the name is empty or contains a colon, a non-ASCII or control character/,
        name,
      );
  });

  it('rejects a configuration in place of its users', () => {
    assert.throws(() => createUsers({ users: [] } as never), /^TypeError: the users must be a list/);
  });

  it('rejects a duplicate name', () => {
    const demo = { name: 'demo', passwordHash };
    assert.throws(
      () => createUsers([demo, demo]),
      /^Error: user "demo": another user already has this name; rename one of the two, or remove it$/,
    );
  });

  it('reports all invalid users together, with a remedy and without their hashes', () => {
    const bad = [
      { name: 'demo', passwordHash: 'plain' },
      { name: 'guest', passwordHash },
      { name: 'de:mo', passwordHash },
    ];
    assert.throws(
      () => createUsers(bad),
      (error: Error) => {
        assert.match(error.message, /^user "demo": .*frontdesk hash-password.*\nuser "de:mo": .*$/);
        assert.doesNotMatch(error.message, /plain|guest/);
        return true;
      },
    );
  });
});

describe('the dummy hash of an unknown name', () => {
  const names = Array.from({ length: 200 }, (_, index) => `unknown-${index}`);
  const costsOf = (...costs: string[]) => {
    const users = createUsers(costs.map((cost, index) => ({ name: `user${index}`, passwordHash: phc(cost) })));
    return names.map((name) => users.dummyHash(name).cost.ln);
  };

  it('has a cost distributed like those of users', () => {
    assert.deepEqual(new Set(costsOf('ln=12,r=8,p=1', 'ln=12,r=8,p=1')), new Set([12]));
    assert.deepEqual(new Set(costsOf('ln=10,r=8,p=1', 'ln=14,r=8,p=1')), new Set([10, 14]));
    const rare = costsOf('ln=10,r=8,p=1', ...Array<string>(9).fill('ln=14,r=8,p=1')).filter((ln) => ln === 10);
    assert.ok(rare.length < names.length / 2, `${rare.length}`);
  });

  it('has the default cost if there are no users', () => assert.deepEqual(new Set(costsOf()), new Set([14])));

  it('has a constant cost for each name', () => {
    const users = createUsers([10, 14].map((ln) => ({ name: `user${ln}`, passwordHash: phc(`ln=${ln},r=8,p=1`) })));
    for (const name of names) assert.deepEqual(users.dummyHash(name), users.dummyHash(name));
  });

  it('is random, so that no known password matches it', () => {
    const requestedSizes: number[] = [];
    const users = createUsers([{ name: 'demo', passwordHash }], (bytes) => {
      requestedSizes.push(bytes);
      return Buffer.alloc(bytes, 9);
    });
    assert.deepEqual(requestedSizes, [16, 32, 16]);
    assert.deepEqual(users.dummyHash('x').hash, Buffer.alloc(32, 9));
    assert.notDeepEqual(createUsers([]).dummyHash('x'), createUsers([]).dummyHash('x'));
  });
});

const cheap: ScryptCost = { ln: 1, r: 1, p: 1 };
const salt = 'A'.repeat(22);
const hash = 'A'.repeat(43);

async function parsed(password: string, cost = cheap): Promise<PasswordHash> {
  const read = parsePasswordHash(await hashPassword(password, undefined, cost));
  assert.ok(read);
  return read;
}

describe('hashPassword', () => {
  it('returns a PHC string with the default cost, a salt of 16 bytes and a hash of 32', async () => {
    const random = (bytes: number) => Buffer.alloc(bytes, 7);
    const expected = scryptSync('demo', Buffer.alloc(16, 7), 32, { N: 2 ** 14, r: 8, p: 1 });
    const encode = (bytes: Buffer) => bytes.toString('base64').replace(/=+$/, '');
    assert.equal(
      await hashPassword('demo', random),
      `$scrypt$ln=14,r=8,p=1$${encode(Buffer.alloc(16, 7))}$${encode(expected)}`,
    );
  });

  it('rejects a password that HTTP Basic cannot transmit', async () => {
    await assert.rejects(hashPassword('demo\n', undefined, cheap), /control characters/);
    await assert.rejects(hashPassword(undefined as never, undefined, cheap), /^TypeError: the password must be text/);
    await assert.rejects(hashPassword('\u00e4'.repeat(1025), undefined, cheap), /not have more than 2048 bytes/);
  });
});

describe('verifyPassword', () => {
  it('accepts the longest password that can be hashed, as Basic transmits it', async () => {
    const password = 'a'.repeat(2048);
    const sent = parseBasic(formatBasic('n'.repeat(1000), password))?.password ?? '';
    assert.equal(await verifyPassword(sent, await parsed(password)), true);
  });

  it('accepts only the exact password, in any script and without Unicode normalisation', async () => {
    for (const [password, ...others] of [
      ['open sesame', '', 'open sesam', 'open sesame ', 'Open sesame', 'open  sesame'],
      ['\u0141\ud83d\ude00', 'A\ud83d\ude00', '\u0141\ud83d\ude01'],
      ['caf\u00e9', 'cafe\u0301', 'cafe'],
    ] as const) {
      const expected = await parsed(password);
      assert.equal(await verifyPassword(password, expected), true, password);
      for (const other of others) assert.equal(await verifyPassword(other, expected), false, other);
    }
  });

  it('agrees with RFC 7914 section 12', async () => {
    const hash = Buffer.from(
      'fdbabe1c9d3472007856e7190d01e9fe7c6ad7cbc8237830e77376634b373162' +
        '2eaf30d92e22a3886ff109279d9830dac727afb94a83ee6d8360cbdfa2cc0640',
      'hex',
    );
    const expected = { cost: { ln: 10, r: 8, p: 16 }, salt: Buffer.from('NaCl'), hash };
    assert.equal(await verifyPassword('password', expected), true);
  });

  it('allocates enough memory for every cost', async () => {
    for (const cost of [
      { ln: 15, r: 8, p: 1 },
      { ln: 1, r: 1, p: 16 },
      { ln: 15, r: 1, p: 1 },
      { ln: 2, r: 32, p: 16 },
    ])
      assert.equal(await verifyPassword('demo', await parsed('demo', cost)), true, JSON.stringify(cost));
  });
});

describe('parsePasswordHash', () => {
  const checkCost = (cost: string, usable: boolean) =>
    assert.equal(parsePasswordHash(`$scrypt$${cost}$${salt}$${hash}`) !== undefined, usable, cost);

  it('accepts costs that a server can afford', () => {
    checkCost('ln=1,r=1,p=1', true);
    checkCost('ln=20,r=8,p=1', true);
    checkCost('ln=18,r=32,p=16', true);
    checkCost('ln=15,r=1,p=1', true);
  });

  it('rejects costs that would overload the server or that scrypt does not define', () => {
    for (const cost of [
      'ln=21,r=8,p=1',
      'ln=21,r=2,p=1',
      'ln=20,r=9,p=1',
      'ln=14,r=33,p=1',
      'ln=14,r=8,p=17',
      'ln=16,r=1,p=1',
    ])
      checkCost(cost, false);
    for (const cost of ['ln=0,r=8,p=1', 'ln=14,r=0,p=1', 'ln=014,r=8,p=1', 'ln=-1,r=8,p=1', 'ln=1e1,r=8,p=1'])
      checkCost(cost, false);
  });

  it('rejects other formats', () => {
    for (const cost of ['r=8,ln=14,p=1', 'ln=14,r=8', 'ln=14,r=8,p=1,q=1', 'ln=14, r=8, p=1', ''])
      checkCost(cost, false);
    for (const text of ['', 'demo', '$2b$10$abc', `$argon2id$v=19$m=1,t=1,p=1$${salt}$${hash}`])
      assert.equal(parsePasswordHash(text), undefined, text);
    const whole = `$scrypt$ln=14,r=8,p=1$${salt}$${hash}`;
    for (const text of [`${whole}\n`, ` ${whole}`, `${whole}$`, `{SCRYPT}${whole}`])
      assert.equal(parsePasswordHash(text), undefined, text);
  });

  const checkBytes = (salt: string, hash: string, usable: boolean) =>
    assert.equal(parsePasswordHash(`$scrypt$ln=14,r=8,p=1$${salt}$${hash}`) !== undefined, usable, `${salt} ${hash}`);

  it('requires 8 to 64 bytes of salt and 16 to 64 bytes of hash', () => {
    const encode = (bytes: number) => Buffer.alloc(bytes).toString('base64').replace(/=+$/, '');
    for (const bytes of [8, 64]) checkBytes(encode(bytes), hash, true);
    for (const bytes of [0, 7, 65, 5000]) checkBytes(encode(bytes), hash, false);
    for (const bytes of [16, 64]) checkBytes(salt, encode(bytes), true);
    for (const bytes of [0, 15, 65, 5000]) checkBytes(salt, encode(bytes), false);
  });

  it('rejects base64 with padding, another alphabet or stray bits', () => {
    for (const bad of [`${salt}==`, 'A'.repeat(21), `${'A'.repeat(21)}B`, `${'A'.repeat(20)}-_`])
      checkBytes(bad, hash, false);
  });
});
