/** Decides what takes effect: all of it at the start; on a reload the records and limits as a whole, and the users. */
import { relative, resolve } from 'node:path';
import { type ConfigurationError, fileError, formatErrors } from './errors.ts';
import {
  type Configuration,
  type ConfigurationRecords,
  configurationFrom,
  isOfUsers,
  type LoadedConfiguration,
  loadDirectory,
} from './load.ts';
import type { Settings } from './settings/settings.ts';
import { type ExposureSettings, exposedDemoUsers, openHost, type User, withoutWrongUsers } from './users.ts';

/**
 * Loads `config`, or the directory in the settings, for the start of a process. Rejects with an Error that lists all
 * errors by file and line, or the demo users that a server open to the network must not have.
 */
export async function requireConfiguration(
  config: string | ConfigurationRecords | undefined,
  settings: Settings,
): Promise<LoadedConfiguration> {
  const loaded =
    typeof config === 'object'
      ? configurationFrom(config, settings)
      : await loadDirectory(config ?? settings.configDir, settings);
  requireNoErrors(loaded);
  const exposed = exposedDemoUsers(settings, loaded.configuration.users);
  if (exposed.length > 0) {
    throw new Error(
      `${exposureMessage(settings, exposed)}: set other passwords (frontdesk hash-password), or ALLOW_DEMO_USERS=true`,
    );
  }
  return loaded;
}

/** Throws an Error that lists all errors by file and line. */
export function requireNoErrors({ errors }: Pick<LoadedConfiguration, 'errors'>): void {
  if (errors.length === 0) return;
  const count = errors.length === 1 ? 'an error' : `${errors.length} errors`;
  throw new Error(`the configuration has ${count}:\n${formatErrors(errors, resolve('.'))}`);
}

function exposureMessage(settings: ExposureSettings, exposed: readonly string[]): string {
  const subject = exposed.length === 1 ? `password of ${exposed[0]} is` : `passwords of ${exposed.join(' and ')} are`;
  return `the demo ${subject} published, and ${openHost(settings)} is open to the network`;
}

/** The rules for a reload that do not depend on the files. */
export interface ReloadPolicy {
  readonly directory: string;
  readonly settings: ExposureSettings;
  /** Returns a `recordError` for each valid record that this process cannot serve. */
  readonly findUnservable: (configuration: Configuration) => readonly ConfigurationError[];
}

/** What a reload applies, and what it refuses. */
export interface Acceptance {
  readonly configuration: Configuration;
  readonly refusals: readonly Refusal[];
}

/** The parts of a configuration that a reload accepts or refuses independently. */
export type ConfigurationPart = 'records' | 'users' | 'certificates';

/** A part of the files that is not in use, or not all of it. */
export interface Refusal {
  /** `records` includes the limits. */
  readonly part: ConfigurationPart;
  /** The object of a cluster whose records these are: `Mapping shop/orders`. */
  readonly object?: string;
  /** What holds until the errors are fixed: `records and limits stay as they were`, `ann and bob cannot sign in`. */
  readonly consequence: string;
  readonly errors: readonly ConfigurationError[];
}

/**
 * Takes the records and limits of a reload if nothing is wrong with any of them, and otherwise none: they stay as they
 * are. Takes the users if users.yaml can be read, without those whose entry is wrong.
 */
export function accept(loaded: LoadedConfiguration, current: Configuration, policy: ReloadPolicy): Acceptance {
  const ofFiles = loaded.errors.filter((error) => !isOfUsers(error, policy.directory));
  const errors = ofFiles.length > 0 ? ofFiles : policy.findUnservable(loaded.configuration);
  const { users, refusals } = acceptUsers(loaded, current.users, policy);
  const records = errors.length > 0 ? current : loaded.configuration;
  return {
    configuration: Object.freeze({ ...records, users, demo: current.demo }),
    refusals: [...refuseRecords(errors), ...refusals],
  };
}

/** Returns the refusal of all records and limits because of these errors. Empty without errors. */
export function refuseRecords(errors: readonly ConfigurationError[]): readonly Refusal[] {
  if (errors.length === 0) return [];
  return [{ part: 'records', consequence: 'records and limits stay as they were', errors }];
}

function acceptUsers(
  { configuration, errors }: LoadedConfiguration,
  current: readonly User[],
  { directory, settings }: ReloadPolicy,
): { readonly users: readonly User[]; readonly refusals: readonly Refusal[] } {
  // An error of the directory itself hides whether it has a users.yaml.
  const found = errors.filter((error) => isOfUsers(error, directory) || relative(directory, error.source.file) === '');
  const ofFile = found.filter(({ record }) => record === undefined);
  if (ofFile.length > 0)
    return { users: current, refusals: [{ part: 'users', consequence: 'users stay as they were', errors: found }] };
  const wrong = [...found, ...exposureErrors(configuration.users, directory, settings)];
  if (wrong.length === 0) return { users: configuration.users, refusals: [] };
  return {
    users: withoutWrongUsers(configuration.users, wrong),
    refusals: [{ part: 'users', consequence: `${namesIn(wrong)} cannot sign in`, errors: wrong }],
  };
}

const namesMax = 20;

/** `ann and bob`. */
function namesIn(wrong: readonly ConfigurationError[]): string {
  const nameOf = ({ record = '' }: ConfigurationError) => record.replace(/^User ?/, '') || 'a user without a name';
  const names = [...new Set(wrong.map(nameOf))];
  const more = names.length - namesMax;
  return [...names.slice(0, namesMax), ...(more > 0 ? [`${more} more`] : [])].join(' and ');
}

function exposureErrors(
  users: readonly User[],
  directory: string,
  settings: ExposureSettings,
): readonly ConfigurationError[] {
  const remedy = 'Set another password (frontdesk hash-password), or ALLOW_DEMO_USERS=true.';
  return exposedDemoUsers(settings, users).map((name) => ({
    ...fileError(`${directory}/users.yaml`, exposureMessage(settings, [name]), remedy, 1),
    record: `User ${name}`,
  }));
}
