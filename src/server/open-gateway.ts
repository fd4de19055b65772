/** The gateway of a process: the records, and the modules that they may name. */
import type { AuthPort, AuthService } from '#auth';
import {
  type AuthService as AuthServiceRecord,
  type Configuration,
  type HeldPrefix,
  parseServiceReference,
  type RateLimitService,
} from '#config';
import { createExplain, type Explain } from '#explain';
import {
  createGateway,
  createResolve,
  type Forward,
  type Gateway,
  type GatewayCounts,
  type InternalRoute,
  type Resolve,
  type Traffic,
} from '#gateway';
import { problem } from '#http';
import type { ClusterRegistry } from '#proxy';
import { connectRateLimit, type Limiter } from '#ratelimit';
import { userHeader } from '#services/booking';
import type { Settled } from './options.ts';
import { createEntrySettings } from './pipeline.ts';
import { isLocalService } from './services.ts';

export interface EdgeParts {
  readonly auth: AuthService | undefined;
  readonly limiter: Limiter | undefined;
  /** The isolated HTTP services of this process, by name. */
  readonly services: Readonly<Record<string, Forward>>;
  /** The versions of the API, the diagnostics and the probes. */
  readonly internalRoutes: readonly InternalRoute[];
  readonly listenerOf: (name: string) => string | undefined;
  /** Shared by the edges of one process, and closed after the last of them. */
  readonly clusters: ClusterRegistry;
  readonly counts: GatewayCounts;
  readonly traffic: Traffic;
}

export interface Edge {
  readonly gateway: Gateway;
  readonly explain: Explain;
  readonly close: () => Promise<void>;
}

/** A process without the gateway module serves its modules plainly: one at `/`, several each under its name. */
export function createEdge(settled: Settled, configuration: Configuration, parts: EdgeParts): Edge {
  const { settings, logger, has } = settled;
  const { services, listenerOf, clusters, counts, traffic } = parts;
  const isLocal = (name: string) => isLocalService(settled, name);
  const resolve = createResolve({ isLocal, listenerOf, addresses: settings.serviceAddresses });
  const common = {
    clusters,
    counts,
    traffic,
    logger,
    timeoutMs: settings.upstreamTimeoutMs,
    connectTimeoutMs: settings.upstreamConnectTimeoutMs,
    idleTimeoutMs: settings.upstreamIdleTimeoutMs,
    bodyBytesMax: settings.bodyBytesMax,
    clock: settled.clock,
  };
  if (!has('gateway')) {
    const internalRoutes = [...plainRoutes(services), ...parts.internalRoutes];
    const gateway = createGateway({ mappings: [], internalRoutes, services, resolve, ...common });
    return { gateway, explain: createExplain(gateway, createEntrySettings(settled)), close: gateway.close };
  }
  const [rateLimitService] = configuration.rateLimitServices;
  const asked = rateLimitService && chooseLimiter(rateLimitService, resolve, parts);
  const gateway = orClose(asked, () =>
    createGateway({
      mappings: configuration.mappings,
      internalRoutes: [...parts.internalRoutes, ...configuration.held.map(heldRoute)],
      versions: configuration.versions,
      identityHeaders: [userHeader],
      services,
      resolve,
      authServices: configuration.authServices.map((record) => ({ record, port: chooseAuth(record, resolve, parts) })),
      rateLimitService,
      limiter: asked?.limiter,
      ...common,
    }),
  );
  return {
    gateway,
    explain: createExplain(gateway, createEntrySettings(settled)),
    async close() {
      await gateway.close();
      await asked?.close();
    },
  };
}

/** What was opened for something that could not be made must not stay open. */
function orClose<T>(opened: { readonly close: () => Promise<void> } | undefined, make: () => T): T {
  try {
    return make();
  } catch (error) {
    void opened?.close();
    throw error;
  }
}

/** A mapping with the same prefix goes before it, a broader one does not. */
function heldRoute({ name, prefix, caseSensitive, precedence }: HeldPrefix): InternalRoute {
  const run = async () => {
    throw problem('misconfigured', { cause: `Mapping ${name} is broken` });
  };
  return { name, prefix, caseSensitive, precedence, rewrite: '', authenticated: false, run };
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

/** Undefined: it is asked across HTTP. A service beside us that happens to have the name must not pass for the auth service. */
function chooseAuth(record: AuthServiceRecord, resolve: Resolve, { auth }: EdgeParts): AuthPort | undefined {
  const target = resolve(record.authService);
  return target.kind === 'local' && target.name === 'auth' ? auth?.answer : undefined;
}

/** The limiter beside us, or the one across gRPC. A process that does not listen, being embedded, asks its own in place of its listener. */
function chooseLimiter(record: RateLimitService, resolve: Resolve, { limiter, listenerOf }: EdgeParts) {
  const reference = record.service;
  const direct = resolve(reference);
  const target = direct.kind === 'local' || reference.includes('://') ? direct : resolve(`grpc://${reference}`);
  if (target.kind === 'local') {
    return { limiter, close: async () => {} };
  }
  const client = connectRateLimit({
    target: () => hostAndPort(target.origins()[0] ?? ''),
    timeoutMs: record.timeoutMs,
  });
  const name = parseServiceReference(reference)?.host ?? '';
  const own = name === 'ratelimit' ? limiter : undefined;
  const unheard = () => listenerOf(name) === undefined;
  const either: Limiter = {
    shouldRateLimit: (request) => (own !== undefined && unheard() ? own : client).shouldRateLimit(request),
    ...(own?.explain && { explain: own.explain }),
  };
  return { limiter: either, close: client.close };
}

/** Of `grpc://host:port`: for a scheme that it does not know, the parser of URLs leaves no port out. */
function hostAndPort(origin: string): { host: string; port: number } {
  const { hostname, port } = new URL(origin);
  return { host: hostname.replace(/^\[|\]$/g, ''), port: Number(port) };
}
