/** The services of this process: auth, those that keep rows, and those of the host. */
import { isDeepStrictEqual } from 'node:util';
import {
  type Authenticator,
  type AuthService,
  createAuthenticator,
  createAuthService,
  createLoginCounts,
  createUsers,
  type LoginCounts,
} from '#auth';
import { type AuthService as AuthServiceRecord, type Configuration, demoModules } from '#config';
import type { Handler } from '#gateway';
import { isolate } from '#http';
import type { Setup } from './options.ts';
import type { LiveConfiguration } from './reload.ts';
import type { ResponseParts, Storage } from './storage.ts';

export interface Services {
  /** Undefined: it does not run in this process. */
  readonly auth: AuthService | undefined;
  /** How its password checks ended. */
  readonly logins: LoginCounts | undefined;
  /** The dispatcher of the API's versions, by the name of each: `v1`. */
  readonly versions: Readonly<Record<string, Handler>>;
  /** Every HTTP service of this process, isolated, by the name that mappings use. */
  readonly byName: Readonly<Record<string, Handler>>;
}

export interface ServicesParts {
  readonly configuration: LiveConfiguration;
  /** Undefined: no module of this process needs one. */
  readonly storage: Pick<Storage, 'createApps'> | undefined;
  readonly problems: ResponseParts;
}

export function createServices(setup: Setup, { configuration, storage, problems }: ServicesParts): Services {
  const { logger, has } = setup;
  const logins = has('auth') ? createLoginCounts() : undefined;
  const realm = () => realmOfListener(setup, configuration.current().configuration);
  const auth = logins && createAuthService({ authenticator: createLiveUsers(configuration, logins), realm, logger });
  const { versionNames = [], apps: stored } = storage?.createApps(problems) ?? {};
  const apps = { ...setup.services, ...stored, ...(auth && { auth: auth.app }) };
  const byName = Object.fromEntries(Object.entries(apps).map(([name, app]) => [name, isolate(app)]));
  const { api } = byName;
  const versions = api ? Object.fromEntries(versionNames.map((name) => [name, api])) : {};
  return { auth, logins, versions, byName };
}

/** The realm that the auth service of this process names to clients, for a record that leads to it. */
export function realmOf({ demo }: Pick<Setup, 'demo'>, record: AuthServiceRecord | undefined): string {
  return record?.realm ?? (demo ? 'travel' : 'api');
}

/** For other proxies, which name no record: the realm of the default record that leads to this process, or of the first. */
function realmOfListener(setup: Setup, { authServices }: Configuration): string {
  const here = authServices.filter(({ authService }) => authService === 'auth');
  return realmOf(setup, here.find(({ isDefault }) => isDefault) ?? here[0]);
}

/** Remembers verified passwords until the users change. */
function createLiveUsers(configuration: LiveConfiguration, counts: LoginCounts): Authenticator {
  const { users } = configuration.current().configuration;
  const authenticator = createAuthenticator({ users: createUsers(users), counts });
  configuration.onChange((next) => {
    if (isDeepStrictEqual(next.users, configuration.current().configuration.users)) return () => {};
    const store = createUsers(next.users);
    return () => authenticator.reload(store);
  });
  return authenticator;
}

/** Undefined: no module of this process needs a database. Rejects with an Error fit for a terminal. */
export async function openStorageIfNeeded(setup: Setup): Promise<Storage | undefined> {
  if (!demoModules.some(setup.has)) return undefined;
  // Late, because it is half of all modules that a process loads.
  const { openStorage } = await import('./storage.ts');
  return openStorage(setup);
}
