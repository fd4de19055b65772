/** For a start that must not go wrong: settings and configuration that are right, or one error fit for a terminal. */
import { resolve } from 'node:path';
import type { ConfigurationError } from './configuration.ts';
import type { ConfigurationRecords } from './configuration-records.ts';
import { exposedDemoUsers } from './demo-users.ts';
import { configurationFrom, type LoadedConfiguration, loadConfiguration } from './load.ts';
import { formatErrors } from './report.ts';
import { type SettingOptions, type Settings, settingsFrom } from './settings.ts';

/** Throws an Error whose message names every option that cannot be used. */
export function requireSettings(options: SettingOptions): Settings {
  const result = settingsFrom(options);
  if (!result.ok) throw new Error(result.message);
  return result.settings;
}

/**
 * From `config`, or from the directory that the settings name. Rejects with an Error whose message is the list of what
 * is wrong, by file and line, or names demo users that a server open to the network must not have. A Mapping of a
 * directory that is broken does not keep the others from being served: `errors` then says why it is not.
 */
export async function requireConfiguration(
  config: string | ConfigurationRecords | undefined,
  settings: Settings,
): Promise<LoadedConfiguration> {
  const loaded =
    typeof config === 'object'
      ? configurationFrom(config, settings)
      : await loadConfiguration(config ?? settings.configDir, settings);
  const isFatal = typeof config === 'object' || loaded.errors.some((error) => !isOfMapping(error));
  if (loaded.errors.length > 0 && isFatal) {
    const count = loaded.errors.length === 1 ? 'an error' : `${loaded.errors.length} errors`;
    throw new Error(`the configuration has ${count}:\n${formatErrors(loaded.errors, resolve('.'))}`);
  }
  const exposed = exposedDemoUsers(settings, loaded.configuration.users);
  if (exposed.length > 0) {
    throw new Error(
      `HOST=${settings.host} is open to the network, and everybody knows the passwords of the demo users ${exposed.join(' and ')}: ` +
        'give them passwords of your own (frontdesk hash-password), or set ALLOW_DEMO_USERS=true',
    );
  }
  return loaded;
}

/** Without another record nobody would know who may come in, or how often. */
function isOfMapping({ record }: ConfigurationError): boolean {
  return record?.startsWith('Mapping ') === true;
}
