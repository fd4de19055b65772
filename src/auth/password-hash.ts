/** Makes and checks scrypt hashes (RFC 7914) as PHC strings, off the event loop. */
import { randomBytes, type ScryptOptions, scrypt, timingSafeEqual } from 'node:crypto';
import { promisify } from 'node:util';
import { encodeUnpadded, type PasswordHash, type ScryptCost } from '#config';
import { hasControlCharacter } from './basic.ts';

/** Returns so many unpredictable bytes. */
export type Random = (bytes: number) => Uint8Array;

/** 16 MiB and some 50 ms: expensive for guessing, affordable for a server that hashes a few at once. */
export const defaultCost: ScryptCost = Object.freeze({ ln: 14, r: 8, p: 1 });

export const hashBytes = 32;
export const saltBytes = 16;

/**
 * Makes `$scrypt$ln=14,r=8,p=1$<salt>$<hash>` for a password, with a salt of 16 bytes and a hash of 32.
 *
 * The password is hashed as the UTF-8 bytes that arrive, without the normalisation of RFC 8265: with
 * `charset="UTF-8"` the client sends NFC (RFC 7617 section 2.1), and a hash made by another tool,
 * which does not normalise, keeps working.
 * @throws {TypeError} for control characters, which HTTP Basic could never send.
 */
export async function hashPassword(
  password: string,
  random: Random = randomBytes,
  cost: ScryptCost = defaultCost,
): Promise<string> {
  if (hasControlCharacter(password)) throw new TypeError('a password with control characters cannot be sent');
  const salt = random(saltBytes);
  return formatPasswordHash({ cost, salt, hash: await derive(password, salt, cost, hashBytes) });
}

/** Takes as long for a wrong password as for the right one. Rejects when memory runs out. */
export async function verifyPassword(password: string, expected: PasswordHash): Promise<boolean> {
  const actual = await derive(password, expected.salt, expected.cost, expected.hash.length);
  return timingSafeEqual(actual, expected.hash);
}

function formatPasswordHash({ cost, salt, hash }: PasswordHash): string {
  return `$scrypt$ln=${cost.ln},r=${cost.r},p=${cost.p}$${encodeUnpadded(salt)}$${encodeUnpadded(hash)}`;
}

const scryptAsync = promisify<string, Uint8Array, number, ScryptOptions, Buffer>(scrypt);

function derive(password: string, salt: Uint8Array, { ln, r, p }: ScryptCost, bytes: number): Promise<Buffer> {
  const N = 2 ** ln;
  // OpenSSL needs room for N + p + 2 blocks of 128 · r bytes; Node's default stops at ln=14, r=8.
  return scryptAsync(password, salt, bytes, { N, r, p, maxmem: 128 * r * (N + p + 2) });
}
