/** The names of the travel services, which records refer to, and of the versions of the API. Loads nothing. */

export const travelModules = ['hotel', 'car', 'api'] as const;
export type TravelModule = (typeof travelModules)[number];

export function isTravelModule(name: string): name is TravelModule {
  return travelModules.some((module) => module === name);
}

/** Each is also the prefix of the version's paths. */
export const apiVersions = ['v1', 'v2'] as const;
export type ApiVersion = (typeof apiVersions)[number];
