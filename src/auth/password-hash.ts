/** Makes and checks scrypt hashes (RFC 7914) as PHC strings, off the event loop. */
import { randomBytes, type ScryptOptions, scrypt, timingSafeEqual } from 'node:crypto';
import { promisify } from 'node:util';
import { hasControlCharacter } from './basic.ts';

/** What one hash costs: memory is about 128 · 2^ln · r bytes, time grows with 2^ln · r · p. */
export interface ScryptCost {
  readonly ln: number;
  readonly r: number;
  readonly p: number;
}

export interface PasswordHash {
  readonly cost: ScryptCost;
  readonly salt: Uint8Array;
  readonly hash: Uint8Array;
}

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

const phc = /^\$scrypt\$ln=([1-9]\d?),r=([1-9]\d?),p=([1-9]\d?)\$([A-Za-z0-9+/]{1,128})\$([A-Za-z0-9+/]{1,128})$/;

/**
 * Reads a PHC string; salt and hash are base64 without padding (github.com/P-H-C/phc-string-format).
 * Returns undefined for another form, and for costs or lengths that are unsafe to use: ln 1 to 20, r 1 to 32,
 * p 1 to 16, at most 1 GiB of memory, 8 to 64 bytes of salt, 16 to 64 bytes of hash.
 */
export function parsePasswordHash(text: string): PasswordHash | undefined {
  const [, ln, r, p, salt64, hash64] = phc.exec(text) ?? [];
  const cost = { ln: Number(ln), r: Number(r), p: Number(p) };
  const salt = decode(salt64, 8, 64);
  const hash = decode(hash64, 16, 64);
  if (salt === undefined || hash === undefined || !isUsable(cost)) return undefined;
  return Object.freeze({ cost: Object.freeze(cost), salt, hash });
}

function formatPasswordHash({ cost, salt, hash }: PasswordHash): string {
  return `$scrypt$ln=${cost.ln},r=${cost.r},p=${cost.p}$${encode(salt)}$${encode(hash)}`;
}

const memoryBytesMax = 2 ** 30;

function isUsable({ ln, r, p }: ScryptCost): boolean {
  // RFC 7914 section 2: N is less than 2^(128 · r / 8); OpenSSL refuses the rest.
  return ln <= 20 && ln < 16 * r && r <= 32 && p <= 16 && 128 * 2 ** ln * r <= memoryBytesMax;
}

function decode(base64: string | undefined, bytesMin: number, bytesMax: number): Uint8Array | undefined {
  const bytes = Buffer.from(base64 ?? '', 'base64');
  const usable = bytes.length >= bytesMin && bytes.length <= bytesMax && encode(bytes) === base64;
  return usable ? bytes : undefined;
}

function encode(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64').replace(/=+$/, '');
}

const scryptAsync = promisify<string, Uint8Array, number, ScryptOptions, Buffer>(scrypt);

function derive(password: string, salt: Uint8Array, { ln, r, p }: ScryptCost, bytes: number): Promise<Buffer> {
  const N = 2 ** ln;
  // OpenSSL needs room for N + p + 2 blocks of 128 · r bytes; Node's default stops at ln=14, r=8.
  return scryptAsync(password, salt, bytes, { N, r, p, maxmem: 128 * r * (N + p + 2) });
}
