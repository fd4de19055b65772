/** The users of the configuration, by name, and a decoy for everybody else. */
import { randomBytes } from 'node:crypto';
import type { User } from '#config';
import {
  defaultCost,
  hashBytes,
  type PasswordHash,
  parsePasswordHash,
  type Random,
  type ScryptCost,
  saltBytes,
} from './password-hash.ts';

/** Where an authenticator looks users up. */
export interface UserStore {
  find(name: string): PasswordHash | undefined;
  /** Matches no password and costs as much as the dearest real one: what a guess at an unknown name is checked against. */
  readonly decoy: PasswordHash;
}

/**
 * Holds the users in memory.
 *
 * A name becomes the value of a header, so it is printable ASCII without a space at either end (RFC 9110
 * section 5.5): encoding other names would let two users share an identity behind a proxy that decodes.
 * It has no colon, since Basic could not send it (RFC 7617 section 2).
 * @throws {Error} that names every unusable user and what to do about it.
 */
export function createUsers(records: readonly User[], random: Random = randomBytes): UserStore {
  const byName = new Map<string, PasswordHash>();
  const faults: string[] = [];
  for (const { name, passwordHash } of records) {
    const hash = parsePasswordHash(passwordHash);
    const fault = faultOf(name, hash, byName);
    if (fault !== undefined) faults.push(`user ${JSON.stringify(name)}: ${fault}`);
    else if (hash !== undefined) byName.set(name, hash);
  }
  if (faults.length > 0) throw new Error(faults.join('\n'));
  return Object.freeze({ find: (name: string) => byName.get(name), decoy: createDecoy([...byName.values()], random) });
}

const headerValue = /^[!-~](?:[ -~]*[!-~])?$/;

function faultOf(
  name: string,
  hash: PasswordHash | undefined,
  taken: ReadonlyMap<string, unknown>,
): string | undefined {
  if (!headerValue.test(name) || name.includes(':'))
    return 'a name is sent as a header; use printable ASCII without a colon, and no space at either end';
  if (taken.has(name)) return 'the name is there twice; remove one of the two';
  if (hash === undefined)
    return 'the password hash is not a usable scrypt PHC string; make a new one with "frontdesk hash-password"';
  return undefined;
}

/** Random bytes in the place of a hash: no password is known that gives them. */
function createDecoy(hashes: readonly PasswordHash[], random: Random): PasswordHash {
  const costs = hashes.map(({ cost }) => cost);
  const cost = costs.reduce((dearest, each) => (work(each) > work(dearest) ? each : dearest), costs[0] ?? defaultCost);
  return Object.freeze({ cost, salt: random(saltBytes), hash: random(hashBytes) });
}

function work({ ln, r, p }: ScryptCost): number {
  return 2 ** ln * r * p;
}
