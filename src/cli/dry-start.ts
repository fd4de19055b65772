/** Starts a server without its connections, for commands that report how it would behave. */
import { resolve } from 'node:path';
import { formatErrors } from '#config';
import { type Frontdesk, openFrontdesk, resolveOptions, type Setup } from '#server';
import { type ModuleChoice, type Settings, usesDemoData } from '#server/product';

/**
 * Opens no port, and connects to neither the database nor Redis. Rejects with a user-facing Error if a server with
 * these settings would not start, or if a part of its configuration is broken. Reads the cluster of the settings, unless
 * `clusterContents` has what was read of it.
 */
export async function startDry(
  { configDir, threads: _, ...settings }: Settings,
  { only, demo }: ModuleChoice,
  clusterContents?: Setup['clusterContents'],
): Promise<Frontdesk> {
  const scratch = { databaseUrl: 'sqlite::memory:', redisUrl: undefined, ratelimitHttpPort: undefined };
  const choice = { only, demo: usesDemoData({ only, demo }) };
  const setup = await resolveOptions({ ...settings, ...scratch, ...choice, config: configDir, dormant: true });
  const { errors } = setup.loaded;
  if (errors.length > 0) throw new Error(`the configuration has errors:\n${formatErrors(errors, resolve('.'))}`);
  return openFrontdesk({ ...setup, clusterContents });
}
