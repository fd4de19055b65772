/** The gateway of a process: the records, and the modules that they may name. */
import type { AuthPort, AuthService } from '#auth';
import {
  type AuthService as AuthServiceRecord,
  type Mapping,
  parseServiceReference,
  type RateLimitService,
} from '#config';
import { createGateway, createResolve, type Forward, type Gateway, type InternalRoute, type Resolve } from '#gateway';
import { connectRateLimit, type Limiter } from '#ratelimit';
import { userHeader } from '#services/booking';
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
  requireHttp(configuration.mappings, resolve, services);
  const authPort = authService && chooseAuth(authService, resolve, parts);
  const asked = rateLimitService && chooseLimiter(rateLimitService, resolve, parts);
  const gateway = createGateway({
    mappings: configuration.mappings,
    internalRoutes: parts.internalRoutes,
    identityHeaders: [userHeader],
    services,
    resolve,
    authService,
    authPort,
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

function requireHttp(mappings: readonly Mapping[], resolve: Resolve, services: EdgeParts['services']): void {
  for (const mapping of mappings) {
    const target = resolve(mapping.service);
    if (target.kind === 'local' && !Object.hasOwn(services, target.name)) throw misnamed(mapping, target.name, 'HTTP');
  }
}

/** Undefined: it is asked across HTTP. A service beside us that happens to have the name must not pass for the auth service. */
function chooseAuth(record: AuthServiceRecord, resolve: Resolve, { auth }: EdgeParts): AuthPort | undefined {
  const target = resolve(record.authService);
  if (target.kind === 'remote') return undefined;
  if (target.name !== 'auth' || auth === undefined) throw misnamed(record, target.name, 'auth');
  return auth.answer;
}

function misnamed(
  { kind, name, source }: Mapping | AuthServiceRecord | RateLimitService,
  service: string,
  role: string,
) {
  const place = `${source.file}:${source.line}  ${kind} ${name}`;
  return new Error(`${place}: "${service}" in this process is no ${role} service: name another one, or host:port`);
}

/** The limiter beside us, or the one across gRPC. A process that does not listen, being embedded, asks its own in place of its listener. */
function chooseLimiter(record: RateLimitService, resolve: Resolve, { limiter, listenerOf }: EdgeParts) {
  const reference = record.service;
  const direct = resolve(reference);
  const target = direct.kind === 'local' || reference.includes('://') ? direct : resolve(`grpc://${reference}`);
  if (target.kind === 'local') {
    if (target.name !== 'ratelimit' || limiter === undefined) throw misnamed(record, target.name, 'rate-limit');
    return { limiter, close: async () => {} };
  }
  const client = connectRateLimit({ target: () => hostAndPort(target.origin()), timeoutMs: record.timeoutMs });
  const name = parseServiceReference(reference)?.host ?? '';
  const unheard = () => limiter !== undefined && name === 'ratelimit' && listenerOf(name) === undefined;
  const either: Limiter = {
    shouldRateLimit: (request) => (limiter !== undefined && unheard() ? limiter : client).shouldRateLimit(request),
  };
  return { limiter: either, close: client.close };
}

/** Of `grpc://host:port`: for a scheme that it does not know, the parser of URLs leaves no port out. */
function hostAndPort(origin: string): { host: string; port: number } {
  const { hostname, port } = new URL(origin);
  return { host: hostname.replace(/^\[|\]$/g, ''), port: Number(port) };
}
