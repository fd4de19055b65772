/** The modules of frontdesk, and which of them a process runs. */
import type { Configuration } from './model.ts';

/** The parts of frontdesk that can run apart, each as a process, or all in one; records name services by the same names. */
export const moduleNames = ['gateway', 'auth', 'ratelimit', 'hotel', 'car', 'api'] as const;
export type ModuleName = (typeof moduleNames)[number];

/** The services of the demo. */
export const demoModules = ['hotel', 'car', 'api'] as const;

export function isDemoModule(name: string): boolean {
  return demoModules.some((module) => module === name);
}

export interface ModuleChoice {
  /** @default all with `demo`, otherwise the gateway and what the records name */
  readonly only?: readonly ModuleName[] | undefined;
  readonly demo?: boolean | undefined;
}

type ServiceAddresses = Readonly<Record<string, unknown>>;

/** A module whose address the settings give is another process's. */
export function chooseModules(
  { only, demo = false }: ModuleChoice,
  configuration: Configuration,
  serviceAddresses: ServiceAddresses,
): readonly ModuleName[] {
  if (only !== undefined) return only;
  if (demo) return moduleNames;
  const named = new Set(modulesNamedBy(configuration).map(({ module }) => module));
  return moduleNames.filter(
    (name) => name === 'gateway' || (named.has(name) && !Object.hasOwn(serviceAddresses, name)),
  );
}

type ServiceRecord = Configuration['mappings' | 'authServices' | 'rateLimitServices'][number];

/** The modules that a Mapping can lead to. */
export const httpModules = [...demoModules, 'auth'] as const;

export interface NamedModule {
  readonly module: ModuleName;
  readonly record: ServiceRecord;
}

/** The records that mean a module of this process, as long as it runs there: by its name, without scheme and port. */
export function modulesNamedBy(configuration: Configuration): readonly NamedModule[] {
  const { mappings, authServices, rateLimitServices } = configuration;
  return [
    ...mappings.flatMap((record) => (record.redirect ? [] : namedModule(record, record.service, httpModules))),
    ...authServices.flatMap((record) => namedModule(record, record.authService, ['auth'])),
    ...rateLimitServices.flatMap((record) => namedModule(record, record.service, ['ratelimit'])),
  ];
}

function namedModule(record: ServiceRecord, reference: string, modules: readonly ModuleName[]): NamedModule[] {
  const module = modules.find((name) => name === reference);
  return module === undefined ? [] : [{ module, record }];
}
