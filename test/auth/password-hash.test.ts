/** Creating, parsing and verifying password hashes, and rejecting unsafe ones. */
import assert from 'node:assert/strict';
import { scryptSync } from 'node:crypto';
import fc from 'fast-check';
import { type PasswordHash, parsePasswordHash, type ScryptCost } from '#config';
import { formatBasic, parseBasic } from '../../src/auth/authenticator.ts';
import { hashPassword, verifyPassword } from '../../src/auth/users.ts';
import { anyCharacter } from '../support/any-character.ts';

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

  it('accepts only the exact password', async () => {
    const expected = await parsed('open sesame');
    assert.equal(await verifyPassword('open sesame', expected), true);
    for (const other of ['', 'open sesam', 'open sesame ', 'Open sesame', 'open  sesame'])
      assert.equal(await verifyPassword(other, expected), false, other);
  });

  it('accepts any password that was hashed, in any script', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.string({ unit: anyCharacter }).filter((value) => !/\p{Cc}/u.test(value)),
        async (password) => assert.equal(await verifyPassword(password, await parsed(password)), true),
      ),
      { numRuns: 50 },
    );
  });

  it('compares the bytes as sent, without Unicode normalisation', async () => {
    const composed = 'caf\u00e9';
    assert.equal(await verifyPassword(composed.normalize('NFD'), await parsed(composed)), false);
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
