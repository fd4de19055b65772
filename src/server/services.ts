/** The services of this process: its database, hotel, car, api and auth, and those of the host. */
import { isDeepStrictEqual } from 'node:util';
import { createApi } from '#api';
import {
  type Authenticator,
  type AuthService,
  createAuthService,
  createLoginCounts,
  createReloadingAuthenticator,
  createUsers,
  type LoginCounts,
} from '#auth';
import type { AuthService as AuthServiceRecord, Configuration } from '#config';
import type { Handler } from '#gateway';
import { isolate, type Problem, type ProblemResponsesOptions, problem, type Representations } from '#http';
import { createVersions } from '#rest';
import { createCarService } from '#services/car';
import { createHotelService } from '#services/hotel';
import { type Database, loadDemo, openDatabase, StorageUnavailable } from '#storage';
import type { Setup } from './options.ts';
import type { LiveConfiguration } from './reload.ts';

export interface Services {
  /** Undefined: it does not run in this process. */
  readonly auth: AuthService | undefined;
  /** How its password checks ended. */
  readonly logins: LoginCounts | undefined;
  /** The names of the API's versions: `v1`. */
  readonly versions: readonly string[];
  /** The dispatcher of the API's versions. */
  readonly api: Handler;
  /** Every HTTP service of this process, isolated, by the name that mappings use. */
  readonly byName: Readonly<Record<string, Handler>>;
}

export interface ServicesParts {
  readonly configuration: LiveConfiguration;
  /** Undefined: no module of this process needs one. */
  readonly database: Database | undefined;
  readonly problems: ProblemResponsesOptions & { readonly representations: Representations };
}

export function createServices(setup: Setup, { configuration, database, problems }: ServicesParts): Services {
  const { settings, logger, clock, has } = setup;
  const logins = has('auth') ? createLoginCounts() : undefined;
  const realm = () => realmOfListener(setup, configuration.current().configuration);
  const auth = logins && createAuthService({ authenticator: createLiveUsers(configuration, logins), realm, logger });
  const versions = has('api') && database ? createApi({ ...problems, database }) : {};
  const api = isolate(createVersions(versions));
  const { bookingHoldsMax: holdsMax, bookingDaysMax: daysMax, bookingUnitsMax: unitsMax } = settings;
  const bookings = { ...problems, clock, limits: { holdsMax, daysMax, unitsMax } };
  const apps = {
    ...setup.services,
    ...(has('hotel') && database && { hotel: createHotelService({ ...bookings, database }) }),
    ...(has('car') && database && { car: createCarService({ ...bookings, database }) }),
    ...(auth && { auth: auth.app }),
  };
  const isolated = Object.entries(apps).map(([name, app]) => [name, isolate(app)]);
  const byName = { ...Object.fromEntries(isolated), ...(has('api') && { api }) };
  return { auth, logins, versions: Object.keys(versions), api, byName };
}

/** What the auth service of this process answers to the gateway for a record. */
export function realmOf({ demo }: Pick<Setup, 'demo'>, record: AuthServiceRecord | undefined): string {
  return record?.realm ?? (demo ? 'travel' : 'api');
}

/** Another proxy names no record: the default one that leads here decides, or the first. */
function realmOfListener(setup: Setup, { authServices }: Configuration): string {
  const here = authServices.filter(({ authService }) => authService === 'auth');
  return realmOf(setup, here.find(({ isDefault }) => isDefault) ?? here[0]);
}

/** Remembers verified passwords until the users change. */
function createLiveUsers(configuration: LiveConfiguration, counts: LoginCounts): Authenticator {
  const { users } = configuration.current().configuration;
  const authenticator = createReloadingAuthenticator({ users: createUsers(users), counts });
  configuration.onChange((next) => {
    if (isDeepStrictEqual(next.users, configuration.current().configuration.users)) return () => {};
    const store = createUsers(next.users);
    return () => authenticator.reload(store);
  });
  return authenticator;
}

/** With the demo's rows if the options say so. Undefined: no module of this process needs a database. Rejects with an Error fit for a terminal. */
export async function openStorage(setup: Setup): Promise<Database | undefined> {
  const { settings, configuration, logger, clock, demo, has } = setup;
  if (!has('hotel') && !has('car') && !has('api')) return undefined;
  const database = await openDatabase({
    url: settings.databaseUrl,
    pool: settings.databasePool,
    timeoutMs: settings.databaseTimeoutMs,
    logger,
  });
  try {
    if (demo) await loadDemo(database, configuration.demo, { nowMs: clock() });
  } catch (error) {
    await database.close();
    throw error;
  }
  return database;
}

/** Undefined for any other error. */
export function storageProblem(thrown: unknown): Problem | undefined {
  if (!(thrown instanceof StorageUnavailable)) return undefined;
  return problem('storage-unavailable', { headers: { 'Retry-After': '1' }, cause: thrown.cause });
}
