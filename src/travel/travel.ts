/** Opens the database of the travel services and creates the apps that use it: hotel, car and the versioned API. */
import type Koa from 'koa';
import type { Middleware } from 'koa';
import type { SettingsOf } from '#config';
import { type Problem, type ProblemResponsesOptions, problem, type Representations } from '#http';
import { createVersions } from '#rest';
import { createCarService } from './car/car.ts';
import { type DemoRows, loadDemo } from './demo.ts';
import { createHotelService } from './hotel/hotel.ts';
import { createApi } from './messages/messages.ts';
import type { TravelModule } from './names.ts';
import type { travelSettings } from './settings.ts';
import { type Database, type DatabaseOptions, StorageUnavailable } from './storage/database.ts';
import { openDatabase } from './storage/open-database.ts';

/** The parts that an app needs to render responses and problems. */
export type ResponseParts = ProblemResponsesOptions & { readonly representations: Representations };

export interface TravelOptions {
  readonly settings: SettingsOf<typeof travelSettings>;
  readonly logger: DatabaseOptions['logger'];
  readonly clock: () => number;
  /** Whether the service runs in this process. */
  readonly has: (name: TravelModule) => boolean;
  /** The rows that fill an empty database. @default none */
  readonly demo: DemoRows | undefined;
}

export interface Travel {
  /** Creates the apps of the services that run in this process. */
  readonly createApps: (problems: ResponseParts) => TravelApps;
  /** Returns the problem that clients get for a database error, or undefined for any other error. */
  readonly toProblem: (thrown: unknown) => Problem | undefined;
  /** Checks the database. Returns a sentence about what is wrong, or undefined. Never rejects. */
  readonly findFault: Database['findFault'];
  readonly close: Database['close'];
}

export interface TravelApps {
  /** The apps by the name that mappings use. */
  readonly apps: Readonly<Partial<Record<TravelModule, Koa | Middleware>>>;
  /** The names of the API's versions, such as `v1`. The app `api` serves all of them. */
  readonly versionNames: readonly string[];
}

/** Also loads the demo's data. Rejects with a user-facing Error. */
export async function createTravel(options: TravelOptions): Promise<Travel> {
  const { settings, logger, clock, demo } = options;
  const database = await openDatabase({
    url: settings.databaseUrl,
    pool: settings.databasePool,
    timeoutMs: settings.databaseTimeoutMs,
    logger,
    // Without this check, a forgotten setting would have no effect.
  } satisfies Required<DatabaseOptions>);
  try {
    if (demo) await loadDemo(database, demo, { nowMs: clock() });
  } catch (error) {
    await database.close();
    throw error;
  }
  const { findFault, close } = database;
  return {
    createApps: (problems) => createApps(options, { ...problems, database }),
    toProblem: storageProblem,
    findFault,
    close,
  };
}

function createApps(
  { settings, clock, has }: TravelOptions,
  parts: ResponseParts & { readonly database: Database },
): TravelApps {
  const { bookingHoldsMax: holdsMax, bookingDaysMax: daysMax, bookingUnitsMax: unitsMax } = settings;
  const bookings = { ...parts, clock, limits: { holdsMax, daysMax, unitsMax } };
  const versions = has('api') ? createApi(parts) : {};
  const apps = {
    ...(has('hotel') && { hotel: createHotelService(bookings) }),
    ...(has('car') && { car: createCarService(bookings) }),
    ...(has('api') && { api: createVersions(versions, parts) }),
  };
  return { apps, versionNames: Object.keys(versions) };
}

export function storageProblem(thrown: unknown): Problem | undefined {
  if (!(thrown instanceof StorageUnavailable)) return undefined;
  return problem('storage-unavailable', { cause: thrown.cause });
}
