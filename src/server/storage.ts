/** Opens the database, and creates the services that use it: hotel, car and the versioned API. */
import type Koa from 'koa';
import type { Middleware } from 'koa';
import { type Problem, type ProblemResponsesOptions, problem, type Representations } from '#http';
import { createVersions } from '#rest';
import { createRefundSteps } from '#travel/booking';
import { createCarService } from '#travel/car';
import { createHotelService } from '#travel/hotel';
import { createApi } from '#travel/messages';
import { type Database, type DatabaseOptions, loadDemo, openDatabase, StorageUnavailable } from '#travel/storage';
import type { Setup } from './options.ts';

/** The parts that an app needs to render responses and problems. */
export type ResponseParts = ProblemResponsesOptions & { readonly representations: Representations };

export interface Storage {
  readonly database: Database;
  /** Creates the apps of the modules that run in this process. */
  readonly createApps: (problems: ResponseParts) => StoredApps;
  /** Returns the problem that clients get for a database error, or undefined for any other error. */
  readonly toProblem: (thrown: unknown) => Problem | undefined;
}

export interface StoredApps {
  /** The apps by the name that mappings use. */
  readonly apps: Readonly<Record<string, Koa | Middleware>>;
  /** The names of the API's versions, such as `v1`. The app `api` serves all of them. */
  readonly versionNames: readonly string[];
}

/** Also loads the demo's data if the options say so. Rejects with a user-facing Error. */
export async function openStorage(setup: Setup): Promise<Storage> {
  const { settings, loaded, logger, clock, demo } = setup;
  const database = await openDatabase({
    url: settings.databaseUrl,
    pool: settings.databasePool,
    timeoutMs: settings.databaseTimeoutMs,
    logger,
    // Without this check, a forgotten setting would have no effect.
  } satisfies Required<DatabaseOptions>);
  try {
    if (demo) await loadDemo(database, loaded.configuration.demo, { nowMs: clock(), refundsOf: createRefundSteps });
  } catch (error) {
    await database.close();
    throw error;
  }
  return {
    database,
    createApps: (problems) => createApps(setup, { ...problems, database }),
    toProblem: storageProblem,
  };
}

function createApps(
  { settings, clock, has }: Setup,
  parts: ResponseParts & { readonly database: Database },
): StoredApps {
  const { bookingHoldsMax: holdsMax, bookingDaysMax: daysMax, bookingUnitsMax: unitsMax } = settings;
  const bookings = { ...parts, clock, limits: { holdsMax, daysMax, unitsMax } };
  const versions = has('api') ? createApi(parts) : {};
  const apps = {
    ...(has('hotel') && { hotel: createHotelService(bookings) }),
    ...(has('car') && { car: createCarService(bookings) }),
    ...(has('api') && { api: createVersions(versions) }),
  };
  return { apps, versionNames: Object.keys(versions) };
}

export function storageProblem(thrown: unknown): Problem | undefined {
  if (!(thrown instanceof StorageUnavailable)) return undefined;
  return problem('storage-unavailable', { headers: { 'Retry-After': '1' }, cause: thrown.cause });
}
