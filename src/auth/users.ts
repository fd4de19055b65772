/** Users by name, checked at load, and the hash for names that do not exist. */
import { hash, randomBytes } from 'node:crypto';
import { isUserName, type PasswordHash, parsePasswordHash, type User } from '#config';
import { defaultCost, hashBytes, type Random, saltBytes } from './password-hash.ts';

export interface UserStore {
  find(name: string): PasswordHash | undefined;
  isAdmin(name: string): boolean;
  /** For a name that does not exist: matches no password, and costs as much as a user's. */
  dummyHash(name: string): PasswordHash;
}

/** Without `roles` a user has none. */
export type UserRecord = Omit<User, 'roles'> & Partial<Pick<User, 'roles'>>;

/** @throws {Error} that names every unusable user and what to do about it. */
export function createUsers(records: readonly UserRecord[], random: Random = randomBytes): UserStore {
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
    return 'a name is sent as a header; use printable ASCII without a colon, and no space at either end';
  if (taken.has(name)) return 'the name is there twice; remove one of the two';
  if (parsed === undefined)
    return 'the password hash is not a usable scrypt PHC string; make a new one with "frontdesk hash-password"';
  return undefined;
}

/**
 * Hashes of random bytes, which no password is known to match. Which user's cost a name gets follows from a keyed hash of the
 * name, so that the costs of unknown names are spread like those of users, and each name keeps its cost.
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
