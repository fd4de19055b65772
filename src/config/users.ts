/** Users: names and scrypt password hashes. */
import * as z from 'zod';
import type { ConfigurationError, User } from './configuration.ts';
import { type Fault, strict, text } from './fields.ts';
import { errorsOf, faultsOf } from './issues.ts';
import { type Kept, keepFirst } from './uniqueness.ts';
import type { PlacedDocument } from './yaml-documents.ts';

const userSchema = strict({
  name: text(nameFault),
  password_hash: text(hashFault),
});
const fileSchema = strict({ users: z.array(z.unknown()) });

const examples = {
  users: '[{ name: …, password_hash: … }]',
  name: 'demo',
  password_hash: '"$scrypt$ln=14,r=8,p=1$…$…" (frontdesk hash-password makes one)',
} as const;

/** The document of users.yaml. One user that cannot be used does not shut the others out. */
export function readUsers(document: PlacedDocument): Kept<User> {
  const read = fileSchema.safeParse(document.value);
  if (!read.success) {
    return {
      kept: [],
      errors: errorsOf(document, faultsOf(read.error, document.value, examples), undefined),
    };
  }
  const parts = read.data.users.map((value, index) => readUser(value, ['users', index], document));
  const unique = keepFirst(
    parts.flatMap(({ found }) => found),
    ({ user }) => user.name,
    ({ user, source }, first) => ({
      source,
      record: `User ${user.name}`,
      message: 'there is already a user of this name',
      other: first.source,
      remedy: 'Rename one of the two, or remove it.',
    }),
  );
  return {
    kept: unique.kept.map(({ user }) => user),
    errors: [...parts.flatMap(({ errors }) => errors), ...unique.errors],
  };
}

interface FoundUser {
  readonly user: User;
  readonly source: ConfigurationError['source'];
}

interface UserPart {
  readonly found: readonly FoundUser[];
  readonly errors: readonly ConfigurationError[];
}

function readUser(value: unknown, path: readonly PropertyKey[], document: PlacedDocument): UserPart {
  const read = userSchema.safeParse(value);
  if (read.success) {
    const user = {
      name: read.data.name,
      passwordHash: read.data.password_hash,
    };
    return {
      found: [{ user, source: { file: document.file, line: document.lineAt(path) } }],
      errors: [],
    };
  }
  const faults = faultsOf(read.error, value, examples).map((fault) => ({
    ...fault,
    path: [...path, ...fault.path],
  }));
  const name: unknown = typeof value === 'object' && value !== null ? Reflect.get(value, 'name') : undefined;
  return {
    found: [],
    errors: errorsOf(document, faults, typeof name === 'string' && name !== '' ? `User ${name}` : 'User'),
  };
}

/** RFC 7617 section 2: the first colon ends the name, and control characters are out. */
function nameFault(name: string): Fault | undefined {
  if (/^[^:\p{Cc}]+$/u.test(name)) return undefined;
  return {
    message: 'is empty, or holds a colon or a control character',
    remedy: 'HTTP Basic cannot carry such a name; choose another.',
  };
}

/** The message never shows the text: it may be a password. */
function hashFault(hash: string): Fault | undefined {
  const { ln, r, p } =
    /^\$scrypt\$ln=(?<ln>\d+),r=(?<r>\d+),p=(?<p>\d+)\$[\w+/-]{11,}\$[\w+/-]{22,}$/.exec(hash)?.groups ?? {};
  if (isBetween(ln, 1, 20) && isBetween(r, 1, 32) && isBetween(p, 1, 16)) return undefined;
  return {
    message: 'is not a scrypt hash in PHC form ($scrypt$ln=14,r=8,p=1$salt$hash)',
    remedy: 'Make one with: frontdesk hash-password',
  };
}

function isBetween(digits: string | undefined, min: number, max: number): boolean {
  return Number(digits) >= min && Number(digits) <= max;
}
