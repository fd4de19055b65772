/** Users, their password hashes and API keys: reads `users.yaml`, and detects published passwords. */
import * as z from 'zod';
import {
  type ApiKey,
  isKeyDigest,
  isKeyName,
  isUserName,
  keyDigestForm,
  keyNameForm,
  parsePasswordHash,
  passwordHashForm,
  userKeysMax,
  userNameForm,
} from '#auth/password-hash';
import type { Source } from '#foundation';
import {
  type ConfigDocument,
  type ConfigurationError,
  errorsOf,
  type Fault,
  faultsOf,
  type PlacedFault,
  valueAt,
} from './errors.ts';
import { isLoopback } from './fields/addresses.ts';
import { type Data, reportFault, strict, text } from './fields/field.ts';
import { mayHoldSecret } from './quote.ts';
import { type Kept, keepFirst } from './records/conflicts.ts';

/** An `admin` may see diagnostics, explanations and metrics. */
export const roles = ['admin'] as const;
export type Role = (typeof roles)[number];

/** `passwordHash` is a scrypt PHC string. A program needs none if it has keys. */
export interface User {
  readonly name: string;
  readonly passwordHash: string | undefined;
  readonly roles: readonly Role[];
  readonly apiKeys: readonly ApiKey[];
}

const keySchema = strict({
  name: text(keyNameFault, { pattern: keyNameForm.source }),
  sha256: text(digestFault, { pattern: keyDigestForm.source }),
});

const userSchema = strict({
  name: text(nameFault, { pattern: userNameForm.source }),
  password_hash: text(hashFault, { pattern: passwordHashForm.source }).optional(),
  roles: z.array(z.enum(roles)).default([]),
  api_keys: z
    .array(keySchema)
    .check((payload) => reportFault(payload, [], keysFault(payload.value)))
    .default([]),
}).check((payload) => reportFault(payload, ['password_hash'], credentialsFault(payload.value)));
type Input = Data<z.input<typeof userSchema>>;

/** What a file or a program may write as a user. */
export interface UserInput extends Input {
  /** Printable ASCII without a colon. */
  readonly name: Input['name'];
  /** A scrypt PHC string, as `frontdesk hash-password` prints it and `hashPassword` returns it. @default none */
  readonly password_hash?: Input['password_hash'];
  /** `admin` may see diagnostics, explanations and metrics. @default [] */
  readonly roles?: Input['roles'];
  /** The SHA-256 digests of the user's keys, in hexadecimal digits, with a name for each. @default [] */
  readonly api_keys?: Input['api_keys'];
}

const fileSchema = strict({ users: z.array(z.unknown()) });

/** The whole of users.yaml, for JSON Schemas. A wrong entry does not prevent that others are read. */
export const usersSchema = strict({ users: z.array(userSchema) });

const examples = {
  users: '[{ name: …, password_hash: … }]',
  name: 'demo',
  password_hash: '"$scrypt$ln=14,r=8,p=1$…$…" (frontdesk hash-password creates one)',
  roles: '[admin]',
  api_keys: '[{ name: laptop, sha256: … }] (frontdesk users add-key creates a key)',
  sha256: '"9f86d08188…" (frontdesk users add-key writes one)',
} as const;

/**
 * Reads all valid users, so that an invalid one does not lock out the others. `earlier`: the users of the documents
 * above in the same file, whose names are taken.
 */
export function readUsers(document: ConfigDocument, earlier: readonly User[] = []): Kept<User> {
  if (Array.isArray(document.value)) return { kept: [], errors: errorsOf(document, [listAlone], undefined) };
  const read = fileSchema.safeParse(document.value);
  if (!read.success)
    return { kept: [], errors: errorsOf(document, faultsOf(read.error, document.value, examples), undefined) };
  const parts = read.data.users.map((value, index) => readUser(value, ['users', index], document));
  const found = parts.flatMap(({ kept }) => kept);
  const taken = new Set(earlier.map(({ name }) => name));
  const repeated = found.filter(({ user }) => taken.has(user.name));
  const unique = keepFirst(
    found.filter(({ user }) => !taken.has(user.name)),
    ({ user }) => user.name,
    sameUser,
  );
  const ownErrors = parts.flatMap(({ errors }) => errors);
  return {
    kept: unique.kept.map(({ user }) => user),
    errors: [...ownErrors, ...repeated.map((one) => sameUser(one)), ...unique.errors, ...sharedKeys(found, earlier)],
  };
}

/** A key of two users identifies neither, so both get an error. */
function sharedKeys(found: readonly FoundUser[], earlier: readonly User[]): readonly ConfigurationError[] {
  const owners = new Map<string, { readonly user: User; readonly source?: Source }>();
  for (const user of earlier) for (const { sha256 } of user.apiKeys) owners.set(sha256, { user });
  return found.flatMap((one) =>
    one.user.apiKeys.flatMap(({ name, sha256 }) => {
      const first = owners.get(sha256) ?? one;
      owners.set(sha256, first);
      if (first.user.name === one.user.name) return [];
      const { source } = one;
      return [
        sharedKey(one, name),
        sharedKey({ user: first.user, source: first.source ?? source }, keyOf(first.user, sha256)),
      ];
    }),
  );
}

function keyOf({ apiKeys }: User, digest: string): string {
  return apiKeys.find(({ sha256 }) => sha256 === digest)?.name ?? '';
}

function sharedKey({ user, source }: FoundUser, key: string): ConfigurationError {
  return {
    source,
    record: userRecord(user.name),
    message: `another user has the same key as the one named ${key}`,
    remedy: 'Remove it from one of the two: a key identifies one user.',
  };
}

const listAlone: PlacedFault = {
  path: [],
  message: 'users.yaml must be a map with the key users, not a list',
  remedy: 'Write "users:" on the line above the list.',
};

/** Leaves out each user with a wrong entry, even if another entry with the name is valid. */
export function withoutWrongUsers(users: readonly User[], errors: readonly ConfigurationError[]): readonly User[] {
  const wrong = new Set(errors.map(({ record }) => record));
  return users.filter(({ name }) => !wrong.has(userRecord(name)));
}

function userRecord(name: string): string {
  return `User ${name}`;
}

function sameUser({ user, source }: FoundUser, first?: FoundUser): ConfigurationError {
  return {
    source,
    record: userRecord(user.name),
    message: 'another user already has this name',
    ...(first && { other: first.source }),
    remedy: 'Rename one of the two, or remove it.',
  };
}

interface FoundUser {
  readonly user: User;
  readonly source: Source;
}

function readUser(value: unknown, path: readonly PropertyKey[], document: ConfigDocument): Kept<FoundUser> {
  const read = userSchema.safeParse(value);
  if (read.success) {
    const { name, password_hash: passwordHash, roles, api_keys: apiKeys } = read.data;
    const user = { name, passwordHash, roles, apiKeys };
    return { kept: [{ user, source: { file: document.file, line: document.lineAt(path) } }], errors: [] };
  }
  const faults = faultsOf(read.error, value, examples, 'the entry').map((fault) => ({
    ...fault,
    path: [...path, ...fault.path],
    ...remedyFor(fault.path.at(-1)),
  }));
  const name = valueAt(value, ['name']);
  // What follows a colon may be a password, as in a file for htpasswd.
  const shown = typeof name === 'string' && !mayHoldSecret(name) ? name.replace(/:.*/s, ':…') : '';
  const record = shown === '' ? 'User' : userRecord(shown);
  return { kept: [], errors: errorsOf(document, faults, record) };
}

/** For those who write the secret itself. */
function remedyFor(field: PropertyKey | undefined): Partial<Fault> {
  if (field === 'password') return { remedy: 'Write the line that frontdesk hash-password prints.' };
  if (field === 'key') return { remedy: 'Never write a key itself: frontdesk users add-key writes its digest.' };
  return {};
}

function credentialsFault({ password_hash, api_keys }: z.output<typeof userSchema>): Fault | undefined {
  if (password_hash !== undefined || api_keys.length > 0) return undefined;
  return {
    message: 'is missing',
    remedy: `Add it: password_hash: ${examples.password_hash}, or give the user a key: frontdesk users add-key`,
  };
}

function keysFault(keys: readonly ApiKey[]): Fault | undefined {
  if (keys.length > userKeysMax) {
    const remedy = 'Remove old keys, or give each program a user.';
    return { message: `lists ${keys.length} keys, and at most ${userKeysMax} are allowed`, remedy };
  }
  const isRepeated = (field: keyof ApiKey) => new Set(keys.map((key) => key[field])).size < keys.length;
  if (isRepeated('name'))
    return { message: 'uses a name for two keys', remedy: 'Rename one of the two, or remove it.' };
  return isRepeated('sha256') ? { message: 'lists a key twice', remedy: 'Remove one of the two.' } : undefined;
}

function keyNameFault(name: string): Fault | undefined {
  if (isKeyName(name)) return undefined;
  return {
    message: 'is not a word of up to 64 letters, digits, ".", "_" and "-"',
    remedy: 'Choose another name, such as that of the program or machine that has the key.',
  };
}

/** The message never quotes the text, which may be the key. */
function digestFault(digest: string): Fault | undefined {
  if (isKeyDigest(digest)) return undefined;
  return {
    message: 'is not a SHA-256 digest in 64 lower-case hexadecimal digits',
    remedy: 'Never write a key itself: frontdesk users add-key creates one and writes its digest.',
  };
}

function nameFault(name: string): Fault | undefined {
  if (isUserName(name)) return undefined;
  return {
    message: 'is empty or contains a colon, a non-ASCII or control character, or a leading or trailing space',
    remedy: 'Choose another name: it is sent in HTTP headers, which cannot carry this one.',
  };
}

/** The message never quotes the text, which may be a password. */
function hashFault(hash: string): Fault | undefined {
  if (parsePasswordHash(hash) !== undefined) return undefined;
  return {
    message: 'is not a usable scrypt PHC string ($scrypt$ln=14,r=8,p=1$salt$hash)',
    remedy: 'Create one with: frontdesk hash-password',
  };
}

/**
 * The passwords of the hashes in config/users.yaml. The hashes identify demo users instead of the names, because a real
 * user may be named demo.
 */
const publishedPasswords: ReadonlyMap<string, string> = new Map([
  ['$scrypt$ln=14,r=8,p=1$7Z3v2oSxdriup1g+drgkTg$r2LV2SXPavtSQ4QpOiNJjQQvDbScHxn1abZc8fZZ+4I', 'demo'],
  ['$scrypt$ln=14,r=8,p=1$ktZlF6TAGqEfxclWGOdQjg$4044K1BHeU6f4lB2+tSE+GlSagAztuw9vBuZiQ4qcUo', 'guest'],
]);

export interface DemoLogin {
  readonly name: string;
  readonly password: string;
  readonly isAdmin: boolean;
}

/** Returns the users whose passwords are published. */
export function demoLoginsAmong(users: readonly User[]): readonly DemoLogin[] {
  return users.flatMap(({ name, passwordHash, roles }) => {
    const password = publishedPasswords.get(passwordHash ?? '');
    return password === undefined ? [] : [{ name, password, isAdmin: roles.includes('admin') }];
  });
}

/** Returns the names of users whose passwords are published. */
export function demoUsersAmong(users: readonly User[]): readonly string[] {
  return demoLoginsAmong(users).map(({ name }) => name);
}

/**
 * Returns the names of demo users that a server with these settings must not have. Empty on loopback or if they are
 * allowed.
 */
export function exposedDemoUsers(settings: ExposureSettings, users: readonly User[]): readonly string[] {
  return settings.allowDemoUsers || openHost(settings) === undefined ? [] : demoUsersAmong(users);
}

/** The settings of these names. */
export interface ExposureSettings {
  readonly host: string;
  /** @default host */
  readonly authHost?: string | undefined;
  readonly allowDemoUsers: boolean;
}

/** Returns the setting that lets other machines try passwords, such as `HOST=0.0.0.0`, or undefined. */
export function openHost({ host, authHost = host }: Omit<ExposureSettings, 'allowDemoUsers'>): string | undefined {
  if (!isLoopback(host)) return `HOST=${host}`;
  return isLoopback(authHost) ? undefined : `AUTH_HOST=${authHost}`;
}
