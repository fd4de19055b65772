/** The gateway of a process: the records, and the modules that they may name. */
import type { AuthService } from '#auth';
import { parseServiceReference, type RateLimitService } from '#config';
import { createGateway, createResolve, type Forward, type Gateway, type InternalRoute, type Resolve } from '#gateway';
import { connectRateLimit, type Limiter } from '#ratelimit';
import type { Settled } from './options.ts';

export interface EdgeParts {
  readonly auth: AuthService | undefined;
  readonly limiter: Limiter | undefined;
  /** The isolated HTTP services of this process, by name. */
  readonly services: Readonly<Record<string, Forward>>;
  /** The versions of the API, the diagnostics and the probes. */
  readonly internalRoutes: readonly InternalRoute[];
  readonly listenerOf: (name: string) => string | undefined;
}

export interface Edge {
  readonly gateway: Gateway;
  readonly close: () => Promise<void>;
}

/** A process without the gateway module serves its modules plainly: one at `/`, several each under its name. */
export function createEdge({ settings, configuration, logger, has }: Settled, parts: EdgeParts): Edge {
  const { services, limiter, listenerOf } = parts;
  const isLocal = (name: string) => Object.hasOwn(services, name) || (name === 'ratelimit' && limiter !== undefined);
  const resolve = createResolve({ isLocal, listenerOf, addresses: settings.serviceAddresses });
  const limits = {
    timeoutMs: settings.upstreamTimeoutMs,
    connectTimeoutMs: settings.upstreamConnectTimeoutMs,
    bodyBytesMax: settings.bodyBytesMax,
  };
  if (!has('gateway')) {
    const internalRoutes = [...plainRoutes(services), ...parts.internalRoutes];
    const gateway = createGateway({ mappings: [], internalRoutes, services, resolve, logger, ...limits });
    return { gateway, close: gateway.close };
  }
  const [authService] = configuration.authServices;
  const [rateLimitService] = configuration.rateLimitServices;
  const asked = rateLimitService && chooseLimiter(rateLimitService, resolve, parts);
  const gateway = createGateway({
    mappings: configuration.mappings,
    internalRoutes: parts.internalRoutes,
    services,
    resolve,
    authService,
    authPort: authService && resolve(authService.authService).kind === 'local' ? parts.auth?.answer : undefined,
    rateLimitService,
    limiter: asked?.limiter,
    logger,
    ...limits,
  });
  return {
    gateway,
    async close() {
      await gateway.close();
      await asked?.close();
    },
  };
}

/** The auth service has a listener of its own, and the API its versions. */
function plainRoutes(services: Readonly<Record<string, Forward>>): InternalRoute[] {
  const plain = Object.entries(services).filter(([name]) => name !== 'auth' && name !== 'api');
  return plain.map(([name, run]) => ({
    name,
    prefix: plain.length === 1 ? '/' : `/${name}`,
    rewrite: '/',
    authenticated: false,
    run,
  }));
}

/** The limiter beside us, or the one across gRPC. A process that does not listen, being embedded, asks its own in place of its listener. */
function chooseLimiter(record: RateLimitService, resolve: Resolve, { limiter, listenerOf }: EdgeParts) {
  const reference = record.service;
  const direct = resolve(reference);
  if (direct.kind === 'local' && limiter !== undefined) return { limiter, close: async () => {} };
  const target = reference.includes('://') ? direct : resolve(`grpc://${reference}`);
  if (target.kind === 'local')
    throw new Error(`RateLimitService ${record.name}: "${reference}" is no rate-limit service`);
  const client = connectRateLimit({ target: () => hostAndPort(target.origin()), timeoutMs: record.timeoutMs });
  const name = parseServiceReference(reference)?.host ?? '';
  const unheard = () => limiter !== undefined && name === 'ratelimit' && listenerOf(name) === undefined;
  const either: Limiter = {
    shouldRateLimit: (request) => (limiter !== undefined && unheard() ? limiter : client).shouldRateLimit(request),
  };
  return { limiter: either, close: client.close };
}

function hostAndPort(origin: string): { host: string; port: number } {
  const { hostname, port, protocol } = new URL(origin.replace(/^grpc:/, 'http:'));
  return { host: hostname.replace(/^\[|\]$/g, ''), port: Number(port) || (protocol === 'https:' ? 443 : 80) };
}
