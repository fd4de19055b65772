/** Assembles a server from all modules, in an order that allows closing them in reverse. */
import type { RequestListener } from 'node:http';
import { type Configuration, demoUsersAmong, loadTls, openFilesMax, packageVersion } from '#config';
import { problemPagesPath } from '#diag';
import { createOutageLogs, delayMsMax } from '#foundation';
import { createGatewayState } from '#gateway';
import { createConnectionLimit, createRepresentations } from '#http';
import { createClusters } from '#proxy';
import { loadTracing } from '#tracing';
import { type CurrentGateway, createCurrentGateway } from './current-gateway.ts';
import { createInternalRoutes } from './internal-routes.ts';
import { type CurrentTls, createListeners, type TimeLeft } from './listeners.ts';
import { type GatewayParts, openGateway } from './open-gateway.ts';
import {
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
import { createServices, openTravelIfNeeded } from './services.ts';

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
  const opened = new AsyncDisposableStack();
  try {
    return await open(setup, opened);
  } catch (error) {
    // The error that prevented the start is more useful to the caller than one from closing, which is only logged.
    await opened.disposeAsync().catch((err: unknown) => setup.logger.error({ err }, 'closing a component failed'));
    throw error;
  }
}

/** Pushes the closing function of each part onto `opened`, which runs them in reverse order. */
async function open(setup: Setup, opened: AsyncDisposableStack): Promise<Frontdesk> {
  const { logger, clock, dormant } = setup;
  const closing = new AbortController();
  let stopMs = setup.settings.shutdownTimeoutMs;
  const timeLeft = createTimeLeft(() => stopMs);
  const shared = await openSharedParts(setup, { closing: closing.signal, timeLeft }, opened);
  const { configuration, travel, rateLimiting, tracing, clusters } = shared;

  // Request handlers: the services of this process, the gateway and the internal routes.
  const representations = createRepresentations();
  const outageLogs = createOutageLogs({ logger });
  const problems = { representations, logger, outages: outageLogs, toProblem: travel?.toProblem, problemPagesPath };
  const services = createServices(setup, { configuration, travel, problems });
  const gateway = createCurrentGateway();
  opened.defer(() => gateway.close(timeLeft()));
  const state = createGatewayState(clusters, clock);
  const routeParts = { ...shared, state, services, gateway, representations, closing: closing.signal };
  const { routes, close: closeStreams } = createInternalRoutes(setup, routeParts);
  const listenerAddresses = new Map<string, string>();
  const resolve = resolverOf(setup, setup.settings.serviceAddresses, (name) => listenerAddresses.get(name));
  const parts = { state, services, routes, limiter: rateLimiting.limiter, listenerAddresses, resolve };
  await openCurrentGateway(setup, parts, { configuration, gateway, outageLogs });

  // In front of the handlers: the middleware, then the listeners.
  const pipeline = createPipeline(setup, { tracing, problems, gateway, auth: services.auth, routes });
  const listeners = createListeners(setup, { ...shared, timeLeft, pipeline, listenerAddresses });
  opened.defer(listeners.close);
  opened.defer(configuration.close);
  if (!dormant) await configuration.watch();
  // Not awaited: a service may start later, and until then the gateway serves the other routes.
  if (!dormant) void reportUnreachableServices(setup, configuration.current().configuration, closing.signal);
  // Runs before the listeners wait for requests in flight: they would wait for open event streams until the deadline.
  opened.defer(closeStreams);
  opened.defer(listeners.drain);
  opened.defer(() => closing.abort());

  let closed: Promise<void> | undefined;
  return Object.freeze({
    app: pipeline.embedded,
    middleware: pipeline.middleware,
    demoUsers: demoUsersAmong(setup.loaded.configuration.users),
    explain: gateway.explain,
    upgradesThrough(handler: RequestListener = pipeline.embedded.callback()) {
      // Checked here, because an error in the listener would end the process at the first upgrade.
      if (typeof handler !== 'function')
        throw new TypeError('upgradesThrough: expected a request listener such as app.callback()');
      return listeners.upgradesThrough(handler);
    },
    listen: listeners.open,
    async reload() {
      await Promise.all([configuration.reload(), listeners.reloadCertificate()]);
    },
    close({ withinMs = stopMs } = {}) {
      stopMs = withinMs;
      // Stored, because a second disposeAsync() would not wait for the first.
      closed ??= opened.disposeAsync();
      return closed;
    },
  });
}

interface CurrentGatewayParts {
  readonly configuration: LiveConfiguration;
  readonly gateway: CurrentGateway;
  readonly outageLogs: ReturnType<typeof createOutageLogs>;
}

/** Opens the gateway of the current configuration, and of each later one. */
async function openCurrentGateway(
  setup: Setup,
  parts: GatewayParts,
  { configuration, gateway, outageLogs }: CurrentGatewayParts,
): Promise<void> {
  async function prepare(next: Configuration): Promise<Commit> {
    const opened = await openGateway(setup, next, parts);
    const usedServices = new Set(opened.gateway.parts.table.routes.map(({ service }) => service));
    return () => {
      gateway.replace(opened);
      outageLogs.keepOnly(usedServices);
    };
  }
  const commit = await prepare(configuration.current().configuration);
  commit();
  // No subscriber after this one may throw: the new gateway would never be used, and nothing would close it.
  configuration.onChange(prepare);
}

/** Opens the parts that stay open across reloads. */
async function openSharedParts(
  setup: Setup,
  { closing, timeLeft }: { readonly closing: AbortSignal; readonly timeLeft: TimeLeft },
  opened: AsyncDisposableStack,
) {
  const { settings, logger, dormant } = setup;
  const tls: CurrentTls = { current: await loadTls(settings) };
  const configuration = await openLiveConfiguration(setup);
  const travel = await openTravelIfNeeded(setup);
  opened.defer(() => travel?.close());
  const rateLimiting = await openRateLimiting(setup, configuration, closing);
  opened.defer(rateLimiting.close);
  const tracing = dormant ? undefined : await loadTracing({ version: packageVersion(), logger });
  const withoutTracing = tracing?.suppressTracing;
  const headerBytesMax = settings.upstreamHeaderBytesMax;
  const timer = dormant ? { timer: () => () => {} } : {};
  const clusters = createClusters({ logger, withoutTracing, headerBytesMax, ...timer });
  // Runs after the listeners have closed. Requests that are left came through a host's server, or are shadow copies.
  opened.defer(() => clusters.close(timeLeft()));
  const limits = createConnectionLimits(setup);
  return { tls, configuration, travel, rateLimiting, tracing, clusters, ...limits };
}

/** Creates the deadline that all steps of a shutdown share. It is set by the first call of the returned function. */
function createTimeLeft(stopMs: () => number): TimeLeft {
  let endsAtMs: number | undefined;
  return () => {
    endsAtMs ??= performance.now() + Math.min(stopMs(), delayMsMax);
    return Math.max(0, endsAtMs - performance.now());
  };
}

/** The open files of a process without clients, for example of the database, the log and Node itself: about 35. */
const ownFiles = 48;

/**
 * A request may need two files: its own connection and one to a service. The remaining 10 % are for the admin port and
 * for rejected connections.
 */
function createConnectionLimits({ settings, logger }: Setup) {
  const files = Math.max(0, openFilesMax() - ownFiles);
  const fewFiles = Math.max(8, Math.min(100, Math.floor(0.05 * files)));
  const max = settings.connectionsMax ?? Math.max(10, Math.floor(0.45 * files));
  const name = 'the bound of the admin port';
  return {
    connectionLimit: createConnectionLimit({ max, logger, rejectionsMax: fewFiles }),
    adminConnectionLimit: createConnectionLimit({ max: fewFiles, logger, name, rejectionsMax: fewFiles }),
  };
}
