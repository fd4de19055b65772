/** The travel services: hotels, cars, bookings, messages and accounts, with their database and demo data. */
import type { Travel, TravelOptions } from './travel.ts';

export { type ApiVersion, apiVersions, isTravelModule, type TravelModule, travelModules } from './names.ts';
export { travelProblems } from './problems.ts';
export { travelSettings } from './settings.ts';
export type { ResponseParts, Travel, TravelApps, TravelOptions } from './travel.ts';

/** Opens the database, and fills an empty one with the demo's data. Rejects with a user-facing Error. */
export async function openTravel(options: TravelOptions): Promise<Travel> {
  // Imported only if needed, because this doubles the number of modules that a process loads.
  const { createTravel } = await import('./travel.ts');
  return createTravel(options);
}
