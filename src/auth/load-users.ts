/** Reads users from a file, for an authenticator without a gateway. Loads the reader when it is needed. */
import type { UserRecord } from './users.ts';

/**
 * Reads `users.yaml` of a configuration directory, for `createUsers`.
 * @throws {Error} that lists every error of the directory with its file, line and fix.
 */
export async function loadUsers(directory: string): Promise<readonly UserRecord[]> {
  const { formatErrors, loadConfiguration } = await import('#config');
  const { configuration, errors } = await loadConfiguration(directory);
  if (errors.length === 0) return configuration.users;
  throw new Error(formatErrors(errors, '.'));
}
