/** The user store: users by name, and dummy hashes for unknown names. */
import { hash, randomBytes } from 'node:crypto';
import { isUserName, type PasswordHash, parsePasswordHash, type User } from '#config';
import { defaultCost, hashBytes, type Random, saltBytes } from './password-hash.ts';

export interface UserStore {
  find(name: string): PasswordHash | undefined;
  isAdmin(name: string): boolean;
  /** Returns a hash for an unknown name. It matches no password and takes as long to verify as that of a user. */
  dummyHash(name: string): PasswordHash;
}

/** A user as configured. `roles` may be omitted. */
export type UserRecord = Omit<User, 'roles'> & Partial<Pick<User, 'roles'>>;

/** @throws {Error} that lists every invalid user with a remedy. */
export function createUsers(records: readonly UserRecord[], random: Random = randomBytes): UserStore {
  if (!Array.isArray(records)) throw new TypeError('the users must be a list, such as `users` of a configuration');
  const byName = new Map<string, PasswordHash>();
  const faults: string[] = [];
  for (const { name, passwordHash } of records) {
    const parsed = parsePasswordHash(passwordHash);
    const fault = faultOf(name, parsed, byName);
    if (fault !== undefined) faults.push(`user ${JSON.stringify(name)}: ${fault}`);
    else if (parsed !== undefined) byName.set(name, parsed);
  }
  if (faults.length > 0) throw new Error(faults.join('\n'));
  const admins = new Set(records.filter(({ roles }) => roles?.includes('admin')).map(({ name }) => name));
  return Object.freeze({
    find: (name: string) => byName.get(name),
    isAdmin: (name: string) => admins.has(name),
    dummyHash: createDummyHashes([...byName.values()], random),
  });
}

function faultOf(
  name: string,
  parsed: PasswordHash | undefined,
  taken: ReadonlyMap<string, unknown>,
): string | undefined {
  if (!isUserName(name))
    return 'the name is empty or contains a colon, a non-ASCII or control character, or a leading or trailing space; choose another name';
  if (taken.has(name)) return 'another user already has this name; rename one of the two, or remove it';
  if (parsed === undefined)
    return 'the password hash is not a usable scrypt PHC string; create one with: frontdesk hash-password';
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
