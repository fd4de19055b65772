/** The running process: the modules that records name, the version and the demo of its package, and its limit of open files. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Configuration } from './load.ts';
import { callsService } from './records/mapping.ts';

type ServiceRecord = Configuration['mappings' | 'authServices' | 'rateLimitServices'][number];

export interface NamedModule<Name extends string = string> {
  readonly module: Name | 'auth' | 'ratelimit';
  readonly record: ServiceRecord;
}

/**
 * Lists the records that refer to a module by its name alone, without scheme and port. It is called in this process if
 * it runs here. `httpModules` are those that can be the service of a Mapping.
 */
export function modulesNamedBy<Name extends string>(
  configuration: Configuration,
  httpModules: readonly Name[],
): readonly NamedModule<Name>[] {
  const { mappings, authServices, rateLimitServices } = configuration;
  return [
    ...mappings.flatMap((record) => (callsService(record) ? namedModule(record, record.service, httpModules) : [])),
    ...authServices.flatMap((record) => namedModule(record, record.authService, ['auth'] as const)),
    ...rateLimitServices.flatMap((record) => namedModule(record, record.service, ['ratelimit'] as const)),
  ];
}

/** Keeps the modules that neither run here nor have an address, so that only the host of the same name is left. */
export function withoutAddress<Named extends NamedModule>(
  named: readonly Named[],
  runs: (module: Named['module']) => boolean,
  serviceAddresses: Readonly<Record<string, unknown>>,
): readonly Named[] {
  return named.filter(({ module }) => !runs(module) && !Object.hasOwn(serviceAddresses, module));
}

function namedModule<Name extends string>(record: ServiceRecord, reference: string, modules: readonly Name[]) {
  const module = modules.find((name) => name === reference);
  return module === undefined ? [] : [{ module, record }];
}

/** Returns the version of this package. */
export function packageVersion(): string {
  const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));
  return version;
}

/** Returns the configuration of the demo, which the package contains. */
export function demoDirectory(): string {
  return fileURLToPath(new URL('../../config', import.meta.url));
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
