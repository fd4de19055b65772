/** What runs in this process under which name, and the records that name it for a part that it cannot play. */
import type { Configuration, ConfigurationError } from '#config';
import { createResolve } from '#gateway';
import type { Settled } from './options.ts';

type Record = Configuration['mappings' | 'authServices' | 'rateLimitServices'][number];

/** Whether a module or a service of the host's own with that name runs in this process; its listener is no matter. */
export function isLocalService({ has, services }: Pick<Settled, 'has' | 'services'>, name: string): boolean {
  return isHttp({ has, services }, name) || (name === 'ratelimit' && has('ratelimit'));
}

/** A service beside us that happens to have the name must not pass for the auth service. */
export function misnamedRecords(settled: Settled, configuration: Configuration): readonly ConfigurationError[] {
  if (!settled.has('gateway')) return [];
  const resolve = createResolve({
    isLocal: (name) => isLocalService(settled, name),
    listenerOf: () => undefined,
    addresses: {},
  });
  const misnamed = (record: Record, reference: string, role: string, plays: (name: string) => boolean) => {
    const target = resolve(reference);
    return target.kind === 'remote' || plays(target.name) ? [] : [errorOf(record, target.name, role)];
  };
  return [
    ...configuration.mappings
      .filter(({ redirect }) => redirect === undefined)
      .flatMap((mapping) =>
        mapping.shadow
          ? misnamed(mapping, mapping.service, 'shadow', () => false)
          : misnamed(mapping, mapping.service, 'HTTP', (name) => isHttp(settled, name)),
      ),
    ...configuration.authServices.flatMap((record) =>
      misnamed(record, record.authService, 'auth', (name) => name === 'auth'),
    ),
    ...configuration.rateLimitServices.flatMap((record) =>
      misnamed(record, record.service, 'rate-limit', (name) => name === 'ratelimit'),
    ),
  ];
}

const httpModules = ['hotel', 'car', 'api', 'auth'] as const;

function isHttp({ has, services }: Pick<Settled, 'has' | 'services'>, name: string): boolean {
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
