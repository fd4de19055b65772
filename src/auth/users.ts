/** The user store: users by name, with scrypt password hashes (RFC 7914), dummy hashes for unknown names, and API keys. */
import { hash, randomBytes, type ScryptOptions, scrypt, timingSafeEqual } from 'node:crypto';
import { promisify } from 'node:util';
import {
  type ApiKey,
  formatPasswordHash,
  isKeyDigest,
  isKeyName,
  isUserName,
  type PasswordHash,
  parsePasswordHash,
  type ScryptCost,
  userKeysMax,
} from '#auth/password-hash';
import type { User } from '#config';
import { hasControlCharacter } from '#foundation';

export interface UserStore {
  find(name: string): PasswordHash | undefined;
  isAdmin(name: string): boolean;
  /** Returns a hash for an unknown name. It matches no password and takes as long to verify as that of a user. */
  dummyHash(name: string): PasswordHash;
  /** Returns the owner of the API key with this SHA-256 digest, in lower-case hexadecimal digits. @default none */
  ownerOfKey?(digest: string): KeyOwner | undefined;
}

/** A user, and the name of one of the user's API keys. */
export interface KeyOwner {
  readonly user: string;
  readonly key: string;
}

/** A user as configured. `roles` may be omitted, and `passwordHash` if there are `apiKeys`. */
export type UserRecord = Pick<User, 'name'> & { readonly [P in Exclude<keyof User, 'name'>]?: User[P] | undefined };

/** @throws {Error} that lists every invalid user with a remedy. */
export function createUsers(records: readonly UserRecord[], random: Random = randomBytes): UserStore {
  if (!Array.isArray(records)) throw new TypeError('the users must be a list, such as `users` of a configuration');
  const byName = new Map<string, PasswordHash>();
  const byKey = new Map<string, KeyOwner>();
  const names = new Set<string>();
  const faults: string[] = [];
  for (const record of records) {
    const { name, passwordHash, apiKeys = [] } = record;
    const parsed = passwordHash === undefined ? undefined : parsePasswordHash(passwordHash);
    const fault = faultOf(record, parsed, names) ?? keyFaultOf(apiKeys, byKey);
    if (fault !== undefined) faults.push(`user ${JSON.stringify(name)}: ${fault}`);
    names.add(name);
    if (parsed !== undefined) byName.set(name, parsed);
    for (const { name: key, sha256 } of apiKeys) byKey.set(sha256, Object.freeze({ user: name, key }));
  }
  if (faults.length > 0) throw new Error(faults.join('\n'));
  const admins = new Set(records.filter(({ roles }) => roles?.includes('admin')).map(({ name }) => name));
  return Object.freeze({
    find: (name: string) => byName.get(name),
    isAdmin: (name: string) => admins.has(name),
    dummyHash: createDummyHashes([...byName.values()], random),
    // The time of a look-up may depend on the digest, but no one can choose a key by a part of its digest.
    ownerOfKey: (digest: string) => byKey.get(digest),
  });
}

function faultOf(
  { name, passwordHash, apiKeys = [] }: UserRecord,
  parsed: PasswordHash | undefined,
  taken: ReadonlySet<string>,
): string | undefined {
  if (!isUserName(name))
    return 'the name is empty or contains a colon, a non-ASCII or control character, or a leading or trailing space; choose another name';
  if (taken.has(name)) return 'another user already has this name; rename one of the two, or remove it';
  if (parsed === undefined && (passwordHash !== undefined || apiKeys.length === 0))
    return 'the password hash is not a usable scrypt PHC string; create one with: frontdesk hash-password';
  return undefined;
}

/** The message never quotes a digest, which may be the key. */
function keyFaultOf(keys: readonly ApiKey[], taken: ReadonlyMap<string, unknown>): string | undefined {
  if (keys.length > userKeysMax) return `more than ${userKeysMax} API keys; remove old ones`;
  for (const { name, sha256 } of keys) {
    if (!isKeyName(name)) return 'the name of a key is not a word of up to 64 letters, digits, ".", "_" and "-"';
    if (!isKeyDigest(sha256))
      return `the sha256 of the key ${name} is not a digest in 64 lower-case hexadecimal digits`;
    if (taken.has(sha256)) return `another user also has the key ${name}; remove it from one of the two`;
  }
  return undefined;
}

/**
 * Creates dummy hashes from random bytes, so that no known password matches them. A keyed hash of the name picks a user
 * whose cost to copy. The costs of unknown names are thus distributed like those of users, and constant for each name.
 */
function createDummyHashes(hashes: readonly PasswordHash[], random: Random): (name: string) => PasswordHash {
  const costs = hashes.length === 0 ? [defaultCost] : hashes.map(({ cost }) => cost);
  const [salt, bytes, secret] = [
    random(saltBytes),
    random(hashBytes),
    Buffer.from(random(saltBytes)).toString('base64'),
  ];
  return (name) => {
    const index = hash('sha256', secret + name, 'buffer').readUInt32BE(0) % costs.length;
    return { cost: costs[index] ?? defaultCost, salt, hash: bytes };
  };
}

/** Returns the given number of unpredictable bytes. */
export type Random = (bytes: number) => Uint8Array;

/** 16 MiB and about 50 ms: expensive for guessing, affordable for a server that computes a few at a time. */
const defaultCost: ScryptCost = Object.freeze({ ln: 14, r: 8, p: 1 });

const hashBytes = 32;
const saltBytes = 16;

/** Leaves about 1,000 bytes of an `Authorization` header for the name. */
const passwordBytesMax = 2048;

/**
 * Hashes a password off the event loop, as `$scrypt$ln=14,r=8,p=1$<salt>$<hash>`, with a salt of 16 bytes and a hash of 32.
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

/** Verifies off the event loop. Takes the same time for wrong and right passwords. Rejects if there is not enough memory. */
export async function verifyPassword(password: string, expected: PasswordHash): Promise<boolean> {
  const actual = await derive(password, expected.salt, expected.cost, expected.hash.length);
  return timingSafeEqual(actual, expected.hash);
}

const scryptAsync = promisify<string, Uint8Array, number, ScryptOptions, Buffer>(scrypt);

function derive(password: string, salt: Uint8Array, { ln, r, p }: ScryptCost, bytes: number): Promise<Buffer> {
  const N = 2 ** ln;
  // OpenSSL needs memory for N + p + 2 blocks of 128 · r bytes. Node's default suffices only up to ln=14, r=8.
  return scryptAsync(password, salt, bytes, { N, r, p, maxmem: 128 * r * (N + p + 2) });
}
