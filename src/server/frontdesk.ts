/** Assembles a server from all modules, in an order that allows closing them in reverse. */
import type { RequestListener } from 'node:http';
import { createTokenProviders, verifiedTokensMaxDefault } from '#auth';
import { type Configuration, demoUsersAmong, loadTls, packageVersion, type Tls } from '#config';
import { problemPagesPath } from '#diag';
import { createOutageLogs, delayMsMax, equalPart } from '#foundation';
import { createGatewayState } from '#gateway';
import { createRepresentations } from '#http';
import { createClusters } from '#proxy';
import { loadTracing } from '#tracing';
import { type CurrentGateway, createCurrentGateway, type OpenGateway } from './current-gateway.ts';
import { createInternalRoutes } from './internal-routes.ts';
import { createConnectionLimits, createListeners, type TimeLeft } from './listeners.ts';
import { type GatewayParts, openGateway } from './open-gateway.ts';
import {
  type CloseOptions,
  type Frontdesk,
  type FrontdeskOptions,
  loggerWithOptionNames,
  resolveOptions,
  type Setup,
  withOptionNames,
} from './options.ts';
import { createPipeline } from './pipeline.ts';
import { openRateLimiting } from './rate-limiting.ts';
import { reportUnreachableServices, resolverOf } from './record-services.ts';
import { type Commit, type LiveConfiguration, openLiveConfiguration } from './reload.ts';
import { type CurrentTokens, createServices, openTravelIfNeeded } from './services.ts';
import type { ThreadParts } from './threads/parts.ts';
import { type CurrentTls, createLiveCertificates, unwatchedCertificates } from './tls/certificates.ts';
import { createHttpsRedirect } from './tls/https-redirect.ts';

/** Rejects with an Error whose message says what is wrong with the options or the configuration, and how to fix it. */
export async function createFrontdesk(options: FrontdeskOptions = {}): Promise<Frontdesk> {
  const desk = await withOptionNames(async () => {
    const setup = await resolveOptions(options);
    return openFrontdesk({ ...setup, logger: loggerWithOptionNames(setup.logger) });
  });
  return Object.freeze({ ...desk, listen: () => withOptionNames(desk.listen) });
}

/** `createFrontdesk` for the command line: with resolved options, and environment variables in errors and log lines. */
export async function openFrontdesk(setup: Setup): Promise<Frontdesk> {
  const { desk } = await openPart(setup, undefined);
  return desk;
}

export interface ThreadDesk {
  readonly desk: Frontdesk;
  readonly replaceCertificates: (tls: Tls) => Promise<void>;
}

/** Opens a frontdesk that is the only one of its process, or one of several threads that serve the same ports. */
export function openPart(setup: Setup, thread: ThreadParts | undefined): Promise<ThreadDesk> {
  return openOrClose(setup, (opened) => open(setup, thread, opened));
}

/** `open` pushes the closing function of each part that it opens. If it rejects, they run in reverse order. */
export async function openOrClose<T>(
  { logger }: Pick<Setup, 'logger'>,
  open: (opened: AsyncDisposableStack) => Promise<T>,
): Promise<T> {
  const opened = new AsyncDisposableStack();
  try {
    return await open(opened);
  } catch (error) {
    // The error that prevented the start is more useful to the caller than one from closing, which is only logged.
    await opened.disposeAsync().catch((err: unknown) => logger.error({ err }, 'closing a component failed'));
    throw error;
  }
}

/** Pushes the closing function of each part onto `opened`, which runs them in reverse order. */
async function open(setup: Setup, thread: ThreadParts | undefined, opened: AsyncDisposableStack): Promise<ThreadDesk> {
  const { logger, clock, dormant } = setup;
  const closing = new AbortController();
  const { timeLeft, close } = createShutdown(setup, opened);
  const shared = await openSharedParts(setup, { closing: closing.signal, timeLeft, thread }, opened);
  const { configuration, certificates, travel, rateLimiting, clusters, tls } = shared;

  // Request handlers: the services of this process, the gateway and the internal routes.
  const representations = createRepresentations();
  const outageLogs = createOutageLogs({ logger });
  const problems = { representations, logger, outages: outageLogs, toProblem: travel?.toProblem, problemPagesPath };
  const tokens: CurrentTokens = { ofListener: undefined };
  const services = createServices(setup, { configuration, travel, problems, tokens, thread });
  const gateway = createCurrentGateway();
  opened.defer(() => gateway.close(timeLeft()));
  const state = createGatewayState(clusters, clock, thread?.count);
  const routeParts = { ...shared, state, services, gateway, representations, closing: closing.signal, thread };
  const { routes, close: closeStreams } = createInternalRoutes(setup, routeParts);
  const listenerAddresses = new Map<string, string>();
  const resolve = resolverOf(setup, setup.settings.serviceAddresses, (name) => listenerAddresses.get(name));
  const parts = { ...shared, state, services, routes, limiter: rateLimiting.limiter, listenerAddresses, resolve };
  await openCurrentGateway(setup, parts, { configuration, gateway, outageLogs, tokens });

  // In front of the handlers: the middleware, then the listeners.
  const httpsRedirect = createHttpsRedirect(setup, { configuration, tls, listenerAddresses });
  const pipeline = createPipeline(setup, { ...routeParts, problems, auth: services.auth, httpsRedirect, routes });
  const listeners = createListeners(setup, { ...shared, timeLeft, pipeline, listenerAddresses });
  opened.defer(listeners.close);
  for (const live of [configuration, certificates]) opened.defer(live.close);
  if (!dormant) await Promise.all([configuration.watch(), certificates.watch(listeners.replaceCertificates)]);
  // Not awaited: a service may start later, and until then the gateway serves the other routes.
  if (!dormant && thread?.isFirst !== false)
    void reportUnreachableServices(setup, configuration.current().configuration, closing.signal);
  // Runs before the listeners wait for requests in flight: they would wait for open event streams until the deadline.
  opened.defer(closeStreams);
  opened.defer(listeners.drain);
  opened.defer(() => closing.abort());

  const desk: Frontdesk = Object.freeze({
    app: pipeline.embedded,
    middleware: pipeline.middleware,
    demoUsers: demoUsersAmong(setup.loaded.configuration.users),
    explain: gateway.explain,
    upgradesThrough: (handler: RequestListener = pipeline.embedded.callback()) => listeners.upgradesThrough(handler),
    listen: listeners.open,
    async reload() {
      await Promise.all([configuration.reload(), certificates.reload()]);
    },
    close,
  });
  return { desk, replaceCertificates: listeners.replaceCertificates };
}

interface CurrentGatewayParts {
  readonly configuration: LiveConfiguration;
  readonly gateway: CurrentGateway;
  readonly outageLogs: ReturnType<typeof createOutageLogs>;
  readonly tokens: CurrentTokens;
}

/** Opens the gateway of the current configuration, and of each later one. */
async function openCurrentGateway(
  setup: Setup,
  parts: GatewayParts,
  { configuration, gateway, outageLogs, tokens }: CurrentGatewayParts,
): Promise<void> {
  /** Stays open if another thread cannot use its configuration, so that it is never committed. */
  let prepared: OpenGateway | undefined;

  async function prepare(next: Configuration): Promise<Commit> {
    await prepared?.close();
    const opened = await openGateway(setup, next, parts);
    prepared = opened;
    const usedServices = new Set(opened.gateway.parts.table.routes.map(({ service }) => service));
    return () => {
      prepared = undefined;
      gateway.replace(opened);
      tokens.ofListener = opened.tokensOfListener;
      outageLogs.keepOnly(usedServices);
    };
  }
  const initial = configuration.current();
  const commit = await prepare(initial.configuration);
  commit(initial);
  // No subscriber after this one may throw: the new gateway would never be used, and nothing would close it.
  configuration.onChange(prepare);
}

interface SharedPartsOptions {
  readonly closing: AbortSignal;
  readonly timeLeft: TimeLeft;
  readonly thread: ThreadParts | undefined;
}

/** Opens the parts that stay open across reloads. */
async function openSharedParts(
  setup: Setup,
  { closing, timeLeft, thread }: SharedPartsOptions,
  opened: AsyncDisposableStack,
) {
  const { settings, logger, dormant } = setup;
  const tls: CurrentTls = thread?.tls ?? { current: await loadTls(settings) };
  const { configuration, certificates } = thread === undefined ? await openWatched(setup, tls) : unwatched(thread);
  const travel = await openTravelIfNeeded(setup);
  opened.defer(() => travel?.close());
  const rateLimiting = await openRateLimiting(setup, { configuration, closing, thread });
  opened.defer(rateLimiting.close);
  const variables = setup.traceVariables;
  const tracing = dormant ? undefined : await loadTracing({ version: packageVersion(), logger, variables });
  // Runs after the last request.
  opened.defer(() => tracing?.close(timeLeft()));
  const withoutTracing = tracing?.suppressTracing;
  const headerBytesMax = settings.upstreamHeaderBytesMax;
  const timer = dormant ? { timer: () => () => {} } : {};
  const clusters = createClusters({ logger, withoutTracing, headerBytesMax, threads: thread?.count, ...timer });
  // Runs after the listeners have closed. Requests that are left came through a host's server, or are shadow copies.
  opened.defer(() => clusters.close(timeLeft()));
  const limits = createConnectionLimits(setup, thread?.count);
  const threads = thread?.count ?? 1;
  const entriesMax = equalPart(verifiedTokensMaxDefault, threads);
  const tokenProviders = createTokenProviders({ logger, clock: setup.clock, dormant, entriesMax });
  opened.defer(tokenProviders.close);
  const live = { tls, configuration, certificates };
  return { ...live, travel, rateLimiting, tracing, clusters, tokenProviders, ...limits, threads };
}

async function openWatched(setup: Setup, tls: CurrentTls) {
  const configuration = await openLiveConfiguration(setup);
  return { configuration, certificates: createLiveCertificates(setup, { tls, records: configuration }) };
}

/** The main thread watches what its threads use. */
function unwatched({ configuration }: ThreadParts) {
  return { configuration, certificates: unwatchedCertificates };
}

/** The steps of a shutdown share a deadline, which the first call of `timeLeft` sets. */
export function createShutdown({ settings }: Pick<Setup, 'settings'>, opened: AsyncDisposableStack) {
  let stopMs = settings.shutdownTimeoutMs;
  let endsAtMs: number | undefined;
  let closed: Promise<void> | undefined;
  return {
    /** How long to wait for requests in flight. */
    stopMs: () => stopMs,
    timeLeft(): number {
      endsAtMs ??= performance.now() + Math.min(stopMs, delayMsMax);
      return Math.max(0, endsAtMs - performance.now());
    },
    close({ withinMs = stopMs }: CloseOptions = {}): Promise<void> {
      stopMs = withinMs;
      // Stored, because a second disposeAsync() would not wait for the first.
      closed ??= opened.disposeAsync();
      return closed;
    },
  };
}
