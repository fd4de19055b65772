/** The demo users, whose passwords everybody can read: known by their hashes, so that a real user may be named demo. */
import { isLoopback } from './addresses.ts';
import type { User } from './configuration.ts';
import type { Settings } from './settings.ts';

/** The password_hash lines of config/users.yaml. */
const publishedHashes: ReadonlySet<string> = new Set([
  '$scrypt$ln=14,r=8,p=1$7Z3v2oSxdriup1g+drgkTg$r2LV2SXPavtSQ4QpOiNJjQQvDbScHxn1abZc8fZZ+4I',
  '$scrypt$ln=14,r=8,p=1$ktZlF6TAGqEfxclWGOdQjg$4044K1BHeU6f4lB2+tSE+GlSagAztuw9vBuZiQ4qcUo',
]);

/** The names of those among the users whose passwords everybody can read. */
export function demoUsersAmong(users: readonly User[]): readonly string[] {
  return users.filter(({ passwordHash }) => publishedHashes.has(passwordHash)).map(({ name }) => name);
}

/** The names of demo users that a server with these settings must not start with; empty on loopback, or when they are allowed. */
export function exposedDemoUsers(
  { host, allowDemoUsers }: Pick<Settings, 'host' | 'allowDemoUsers'>,
  users: readonly User[],
): readonly string[] {
  return allowDemoUsers || isLoopback(host) ? [] : demoUsersAmong(users);
}
