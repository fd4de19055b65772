/** The services that records name: which run in this process, in what role, and which on the network accept no connection. */
import { connect } from 'node:net';
import { type Configuration, type ConfigurationError, flatMapInParts, httpModules, type Work } from '#config';
import { createResolve, hostAndPort, type Resolve, resolveLimiter, type Target } from '#gateway';
import type { Setup } from './options.ts';

type Record = Configuration['mappings' | 'authServices' | 'rateLimitServices'][number];

type LocalNames = Pick<Setup, 'has' | 'services'>;

/** Whether a module or a service of the host with that name runs in this process, listening or not. */
export function isLocalService(setup: LocalNames, name: string): boolean {
  return isHttpService(setup, name) || (name === 'ratelimit' && setup.has('ratelimit'));
}

function resolverOf(setup: LocalNames, addresses: Setup['settings']['serviceAddresses']): Resolve {
  return createResolve({ isLocal: (name) => isLocalService(setup, name), listenerOf: () => undefined, addresses });
}

/** A service of the host that happens to have the name must not pass for the auth service. */
export function* checkServiceRoles(
  setup: LocalNames,
  configuration: Configuration,
): Work<readonly ConfigurationError[]> {
  if (!setup.has('gateway')) return [];
  const resolve = resolverOf(setup, {});
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

/** Long enough for a connection, short enough for a person who reads the log of the start. */
const connectTimeoutMs = 2000;

interface AskedService {
  readonly record: string;
  readonly target: Target;
  /** What becomes of requests in the meantime. */
  readonly consequence: string;
}

/** Opens a connection to each and closes it. Never rejects; ends early when the process closes. */
export async function reportSilentServices(
  setup: Setup,
  configuration: Configuration,
  closing: AbortSignal,
): Promise<void> {
  if (!setup.has('gateway')) return;
  await Promise.all(
    askedServices(setup, configuration).map(async ({ record, target, consequence }) => {
      if (target.kind === 'local') return;
      const origins = target.origins();
      const faults = await Promise.all(origins.map((origin) => connectionFault(origin, closing)));
      if (closing.aborted || faults.includes(undefined)) return;
      const found = origins.map((origin, index) => `${origin} (${faults[index]})`).join(', ');
      setup.logger.warn({}, `${record} does not answer at ${found}; until it does, ${consequence}`);
    }),
  );
}

function askedServices(setup: Setup, { authServices, rateLimitServices }: Configuration): readonly AskedService[] {
  const resolve = resolverOf(setup, setup.settings.serviceAddresses);
  return [
    ...authServices.map(({ name, authService, failureModeAllow, statusOnError }) => ({
      record: `AuthService ${name}`,
      target: resolve(authService),
      consequence: failureModeAllow
        ? 'requests pass without an identity'
        : `requests are answered with ${statusOnError}`,
    })),
    ...rateLimitServices.map(({ name, service, failureModeDeny }) => ({
      record: `RateLimitService ${name}`,
      target: resolveLimiter(resolve, service),
      consequence: failureModeDeny ? 'requests are answered with 503' : 'requests pass without being counted',
    })),
  ];
}

/** Undefined: it accepts connections. */
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
    socket.once('timeout', () => end('no answer'));
    socket.once('error', (error: NodeJS.ErrnoException) => end(error.code ?? error.message));
    closing.addEventListener('abort', () => end('closed'), { once: true });
  });
}
