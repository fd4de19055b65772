/** Which services run in this process, and the records that name one of them in a role that it cannot play. */
import { type Configuration, type ConfigurationError, flatMapInParts, type Work } from '#config';
import { createResolve } from '#gateway';
import type { Setup } from './options.ts';

type Record = Configuration['mappings' | 'authServices' | 'rateLimitServices'][number];

type LocalNames = Pick<Setup, 'has' | 'services'>;

/** Whether a module or a service of the host with that name runs in this process, listening or not. */
export function isLocalService(setup: LocalNames, name: string): boolean {
  return isHttpService(setup, name) || (name === 'ratelimit' && setup.has('ratelimit'));
}

/** A service of the host that happens to have the name must not pass for the auth service. */
export function* checkServiceRoles(
  setup: LocalNames,
  configuration: Configuration,
): Work<readonly ConfigurationError[]> {
  if (!setup.has('gateway')) return [];
  const isLocal = (name: string) => isLocalService(setup, name);
  const resolve = createResolve({ isLocal, listenerOf: () => undefined, addresses: {} });
  const check = (record: Record, reference: string, role: string, canPlay: (name: string) => boolean) => {
    const target = resolve(reference);
    return target.kind === 'remote' || canPlay(target.name) ? [] : [errorOf(record, target.name, role)];
  };
  const { mappings, authServices, rateLimitServices } = configuration;
  return [
    ...(yield* flatMapInParts(mappings, (mapping) => {
      if (mapping.redirect !== undefined) return [];
      return mapping.shadow
        ? check(mapping, mapping.service, 'shadow', () => false)
        : check(mapping, mapping.service, 'HTTP', (name) => isHttpService(setup, name));
    })),
    ...authServices.flatMap((record) => check(record, record.authService, 'auth', (name) => name === 'auth')),
    ...rateLimitServices.flatMap((record) =>
      check(record, record.service, 'rate-limit', (name) => name === 'ratelimit'),
    ),
  ];
}

const httpModules = ['hotel', 'car', 'api', 'auth'] as const;

function isHttpService({ has, services }: LocalNames, name: string): boolean {
  return Object.hasOwn(services, name) || httpModules.some((module) => module === name && has(module));
}

function errorOf({ kind, name, source }: Record, service: string, role: string): ConfigurationError {
  return {
    source,
    record: `${kind} ${name}`,
    message: `"${service}" in this process is no ${role} service`,
    remedy: 'Name another one, or write host:port.',
  };
}
