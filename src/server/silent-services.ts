/** Says at the start which AuthService or RateLimitService across the network accepts no connection. */
import { connect } from 'node:net';
import type { Configuration } from '#config';
import { createResolve, hostAndPort, resolveLimiter, type Target } from '#gateway';
import type { Setup } from './options.ts';
import { isLocalService } from './service-roles.ts';

/** Long enough for a connection, short enough for somebody who reads the log of the start. */
const connectTimeoutMs = 2000;

interface Asked {
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

function askedServices(setup: Setup, { authServices, rateLimitServices }: Configuration): readonly Asked[] {
  const { serviceAddresses: addresses } = setup.settings;
  const resolve = createResolve({
    isLocal: (name) => isLocalService(setup, name),
    listenerOf: () => undefined,
    addresses,
  });
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
