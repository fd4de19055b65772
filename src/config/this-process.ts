/** The running process: the modules that it chooses, the version of its package, and its limit of open files. */
import { readFileSync } from 'node:fs';
import type { Configuration } from './load.ts';

/**
 * The parts of frontdesk, which can share a process or run in separate ones. Records refer to them as services by these
 * names.
 */
export const moduleNames = ['gateway', 'auth', 'ratelimit', 'hotel', 'car', 'api'] as const;
export type ModuleName = (typeof moduleNames)[number];

/** The services of the demo. */
export const demoModules = ['hotel', 'car', 'api'] as const;

export function isDemoModule(name: string): boolean {
  return demoModules.some((module) => module === name);
}

export interface ModuleChoice {
  /** @default all modules with `demo`, otherwise the gateway and the modules that the records name */
  readonly only?: readonly ModuleName[] | undefined;
  readonly demo?: boolean | undefined;
}

/** Whether an empty database is filled with the demo data: as an option says, or if a service of the demo was chosen. */
export function usesDemoData({ only = [], demo = only.some(isDemoModule) }: ModuleChoice): boolean {
  return demo;
}

type ServiceAddresses = Readonly<Record<string, unknown>>;

/** Chooses the modules to run. A module whose address is among `serviceAddresses` runs in another process. */
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

/** The modules that can be the service of a Mapping. */
export const httpModules = [...demoModules, 'auth'] as const;

export interface NamedModule {
  readonly module: ModuleName;
  readonly record: ServiceRecord;
}

/**
 * Lists the records that refer to a module by its name alone, without scheme and port. It is called in this process if
 * it runs here.
 */
export function modulesNamedBy(configuration: Configuration): readonly NamedModule[] {
  const { mappings, authServices, rateLimitServices } = configuration;
  return [
    ...mappings.flatMap((record) => (record.redirect ? [] : namedModule(record, record.service, httpModules))),
    ...authServices.flatMap((record) => namedModule(record, record.authService, ['auth'])),
    ...rateLimitServices.flatMap((record) => namedModule(record, record.service, ['ratelimit'])),
  ];
}

/** Keeps the modules that neither run here nor have an address, so that only the host of the same name is left. */
export function withoutAddress(
  named: readonly NamedModule[],
  runs: (module: ModuleName) => boolean,
  serviceAddresses: ServiceAddresses,
): readonly NamedModule[] {
  return named.filter(({ module }) => !runs(module) && !Object.hasOwn(serviceAddresses, module));
}

function namedModule(record: ServiceRecord, reference: string, modules: readonly ModuleName[]): NamedModule[] {
  const module = modules.find((name) => name === reference);
  return module === undefined ? [] : [{ module, record }];
}

/** Returns the version of this package. */
export function packageVersion(): string {
  const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));
  return version;
}

/** Assumed when the system does not report a limit. */
const usualMax = 10_000;

/**
 * Returns how many files and connections this process may open. This is what `ulimit -Hn` prints, because Node raises
 * the soft limit to the hard limit when it starts.
 */
export function openFilesMax(): number {
  try {
    const [, soft] = /^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
    return soft === undefined ? usualMax : Number(soft);
  } catch {
    // The file exists only on Linux.
    return usualMax;
  }
}
