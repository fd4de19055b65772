/** Checks the services that records name: local ones must suit the record, and remote ones should be reachable. */
import { connect } from 'node:net';
import {
  type Configuration,
  type ConfigurationError,
  callsService,
  modulesNamedBy,
  ownAuthService,
  type RateLimitService,
  recordError,
  withoutAddress,
} from '#config';
import {
  createResolve,
  describeTarget,
  hostAndPort,
  type Resolve,
  type ResolverOptions,
  resolveLimiter,
  type Target,
} from '#gateway';
import { httpModules } from '#server/product';
import type { Setup } from './options.ts';

type ServiceRecord = Configuration['mappings' | 'authServices' | 'rateLimitServices'][number];

type LocalNames = Pick<Setup, 'has' | 'services'> & Partial<Pick<Setup, 'clusterAddresses'>>;

/** Whether a module or a host's service with this name runs in this process, listening or not. */
function isLocalService(setup: LocalNames, name: string): boolean {
  return isHttpService(setup, name) || (name === 'ratelimit' && setup.has('ratelimit'));
}

/**
 * `listenerOf` returns the address where a module of this process listens. @default none listens
 * The addresses of a cluster are those of the setup.
 */
export function resolverOf(
  setup: LocalNames,
  addresses: Setup['settings']['serviceAddresses'],
  listenerOf: ResolverOptions['listenerOf'] = () => undefined,
): Resolve {
  const liveAddresses = setup.clusterAddresses?.liveAddresses;
  return createResolve({ isLocal: (name) => isLocalService(setup, name), listenerOf, addresses, liveAddresses });
}

/** Returns an error for each record that uses a service of this process in a role it cannot have. */
export function checkServiceRoles(
  setup: LocalNames,
  configuration: Pick<Configuration, 'mappings' | 'authServices' | 'rateLimitServices'>,
): readonly ConfigurationError[] {
  if (!setup.has('gateway')) return [];
  const resolve = resolverOf(setup, {});
  const check = (record: ServiceRecord, reference: string, role: string, isSuitable: (name: string) => boolean) => {
    const target = resolve(reference);
    return target.kind === 'remote' || isSuitable(target.name) ? [] : [roleError(record, target.name, role)];
  };
  const { mappings, authServices, rateLimitServices } = configuration;
  return [
    ...mappings.flatMap((mapping) => {
      if (!callsService(mapping)) return [];
      return mapping.shadow
        ? check(mapping, mapping.service, 'the target of a shadow', () => false)
        : check(mapping, mapping.service, mapping.grpc ? 'a gRPC service' : 'an HTTP service', (name) => {
            return !mapping.grpc && isHttpService(setup, name);
          });
    }),
    ...authServices.flatMap((record) =>
      check(record, record.authService, 'an auth service', (name) => name === ownAuthService),
    ),
    ...rateLimitServices.flatMap((record) =>
      check(record, record.service, 'a rate-limit service', (name) => name === 'ratelimit'),
    ),
  ];
}

/** Returns an error for each record that names a module which this process would run after a restart. */
export function checkModulesRun(setup: Setup, configuration: Configuration): readonly ConfigurationError[] {
  if (setup.areModulesChosen || !setup.has('gateway')) return [];
  const missing = withoutAddress(
    modulesNamedBy(configuration, httpModules),
    setup.has,
    setup.settings.serviceAddresses,
  );
  return missing.map(({ module, record }) => {
    const message = `"${module}" does not run, because no record named it at the start`;
    const remedy = 'Restart frontdesk to run it here, or write host:port for a service on the network.';
    return recordError(record, { message, remedy });
  });
}

function isHttpService({ has, services }: LocalNames, name: string): boolean {
  return Object.hasOwn(services, name) || httpModules.some((module) => module === name && has(module));
}

function roleError(record: ServiceRecord, service: string, role: string): ConfigurationError {
  const message = `"${service}" in this process cannot be used as ${role}`;
  return recordError(record, {
    message,
    remedy: 'Use another service, or write host:port for a service on the network.',
  });
}

/**
 * Whether requests are rejected while the limiter cannot decide. RATELIMIT_FAIL_OPEN=false makes the limiter of this
 * process reject them, whatever the record says.
 */
export function failsClosed(setup: LocalNames & Pick<Setup, 'settings'>, record: RateLimitService): boolean {
  if (record.failureModeDeny || setup.settings.ratelimitFailOpen) return record.failureModeDeny;
  return resolverOf(setup, {})(record.service).kind === 'local';
}

/** Long enough for a connection, short enough for someone who watches the log during startup. */
const connectTimeoutMs = 2000;

interface CalledService {
  readonly record: ServiceRecord;
  readonly target: Target;
  /** What happens to requests while the service is unreachable. */
  readonly consequence: string;
}

/** Logs which auth and rate-limit services accept no connection. Never rejects. Ends early when the process closes. */
export async function reportUnreachableServices(
  setup: Setup,
  configuration: Configuration,
  closing: AbortSignal,
): Promise<void> {
  if (!setup.has('gateway')) return;
  await Promise.all(
    requiredServices(setup, configuration).map(async ({ record, target, consequence }) => {
      if (target.kind === 'local') return;
      const name = `${record.kind} ${record.name}`;
      const origins = target.origins();
      if (origins.length === 0) {
        setup.logger.warn({}, `${name} has ${describeTarget(target)}; until that changes, ${consequence}`);
        return;
      }
      const faults = await Promise.all(origins.map((origin) => connectionFault(origin, closing)));
      if (closing.aborted || faults.includes(undefined)) return;
      const found = origins.map((origin, index) => `${origin} (${faults[index]})`).join(', ');
      setup.logger.warn({}, `${name} is unreachable at ${found}; until that changes, ${consequence}`);
    }),
  );
}

/** Returns a notice for each record whose service has no address, so that calls of it fail at once. */
export function addressNotices(setup: ServiceSetup, configuration: Configuration): readonly ConfigurationError[] {
  if (!setup.has('gateway')) return [];
  const resolve = resolverOf(setup, setup.settings.serviceAddresses);
  const ofMappings = configuration.mappings.filter(callsService).map((record) => ({
    record,
    target: resolve(record.service),
    consequence: record.shadow ? 'no request is copied to it' : 'its requests get 503',
  }));
  return [...ofMappings, ...requiredServices(setup, configuration)].flatMap(({ record, target, consequence }) => {
    if (target.kind === 'local' || target.origins().length > 0) return [];
    const remedy = target.whyEmpty?.()?.remedy ?? 'Give it an address in SERVICE_ADDRESSES.';
    return [
      recordError(record, { message: `has ${describeTarget(target)}; until that changes, ${consequence}`, remedy }),
    ];
  });
}

type ServiceSetup = LocalNames & Pick<Setup, 'settings'>;

function requiredServices(
  setup: ServiceSetup,
  { authServices, rateLimitServices }: Configuration,
): readonly CalledService[] {
  const resolve = resolverOf(setup, setup.settings.serviceAddresses);
  return [
    ...authServices.map((record) => ({
      record,
      target: resolve(record.authService),
      consequence: record.failureModeAllow
        ? 'requests pass without an identity'
        : `requests are rejected with ${record.statusOnError}`,
    })),
    ...rateLimitServices.map((record) => ({
      record,
      target: resolveLimiter(resolve, record.service),
      consequence: record.failureModeDeny ? 'requests are rejected with 503' : 'requests pass without being counted',
    })),
  ];
}

/** Resolves to undefined if the service accepts connections. */
function connectionFault(origin: string, closing: AbortSignal): Promise<string | undefined> {
  const { host, port } = hostAndPort(origin);
  return new Promise((resolve) => {
    const socket = connect({
      host,
      port: port || (origin.startsWith('https:') ? 443 : 80),
      timeout: connectTimeoutMs,
    });
    const end = (fault?: string) => {
      socket.destroy();
      resolve(fault);
    };
    socket.unref();
    socket.once('connect', () => end());
    socket.once('timeout', () => end('timed out'));
    socket.once('error', (error: NodeJS.ErrnoException) => end(error.code ?? error.message));
    closing.addEventListener('abort', () => end('closed'), { once: true });
  });
}
