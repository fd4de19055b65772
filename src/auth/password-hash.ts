/** Creates and verifies scrypt password hashes (RFC 7914) as PHC strings, off the event loop. */
import { randomBytes, type ScryptOptions, scrypt, timingSafeEqual } from 'node:crypto';
import { promisify } from 'node:util';
import { encodeUnpadded, type PasswordHash, type ScryptCost } from '#config';
import { hasControlCharacter, passwordBytesMax } from './basic.ts';

/** Returns the given number of unpredictable bytes. */
export type Random = (bytes: number) => Uint8Array;

/** 16 MiB and about 50 ms: expensive for guessing, affordable for a server that computes a few at a time. */
export const defaultCost: ScryptCost = Object.freeze({ ln: 14, r: 8, p: 1 });

export const hashBytes = 32;
export const saltBytes = 16;

/**
 * Hashes a password as `$scrypt$ln=14,r=8,p=1$<salt>$<hash>`, with a salt of 16 bytes and a hash of 32.
 *
 * Hashes the UTF-8 bytes as they are, without the normalisation of RFC 8265. With `charset="UTF-8"`, clients send NFC
 * anyway (RFC 7617 section 2.1), and hashes from other tools, which do not normalise, keep working.
 * @throws {TypeError} for control characters, which HTTP Basic cannot transmit, and for more than 2,048 bytes, which
 * would not fit into an `Authorization` header that the auth service accepts.
 */
export async function hashPassword(
  password: string,
  random: Random = randomBytes,
  cost: ScryptCost = defaultCost,
): Promise<string> {
  if (typeof password !== 'string') throw new TypeError(`the password must be text, not ${typeof password}`);
  if (hasControlCharacter(password))
    throw new TypeError('a password must not contain control characters: HTTP Basic cannot transmit them');
  if (Buffer.byteLength(password) > passwordBytesMax)
    throw new TypeError(`a password must not have more than ${passwordBytesMax} bytes`);
  const salt = random(saltBytes);
  return formatPasswordHash({ cost, salt, hash: await derive(password, salt, cost, hashBytes) });
}

/** Takes the same time for wrong and right passwords. Rejects if there is not enough memory. */
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
  // OpenSSL needs memory for N + p + 2 blocks of 128 · r bytes. Node's default suffices only up to ln=14, r=8.
  return scryptAsync(password, salt, bytes, { N, r, p, maxmem: 128 * r * (N + p + 2) });
}
