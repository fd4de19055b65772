/** Puts everything together in the order in which a request meets it, and closes it in reverse. */
import type { RequestListener } from 'node:http';
import { delayMsMax, demoUsersAmong, loadTls, openFilesMax, packageVersion } from '#config';
import { problemPagesPath } from '#diag';
import { createGatewayCounts, createTraffic } from '#gateway';
import { createConnectionLimit, createOutageLogs, createOutageRegistry, createRepresentations } from '#http';
import { createClusters } from '#proxy';
import { loadTracing } from '#tracing';
import { createGatewayHost } from './gateway-host.ts';
import { createListeners, type TimeLeft } from './listeners.ts';
import { openGateway } from './open-gateway.ts';
import { inOptionNames, loggerWithOptionNames } from './option-names.ts';
import { type Frontdesk, type FrontdeskOptions, resolveOptions, type Setup } from './options.ts';
import { createOwnRoutes } from './own-routes.ts';
import { createPipeline } from './pipeline.ts';
import { createReadiness } from './probes.ts';
import { openRateLimiting } from './rate-limiting.ts';
import { reportSilentServices } from './record-services.ts';
import { createLiveConfiguration } from './reload.ts';
import { createServices, openStorageIfNeeded } from './services.ts';

/** Rejects with an Error whose message names what is wrong with the options or the configuration, and the remedy. */
export async function createFrontdesk(options: FrontdeskOptions = {}): Promise<Frontdesk> {
  const desk = await inOptionNames(async () => {
    const setup = await resolveOptions(options);
    return openFrontdesk({ ...setup, logger: loggerWithOptionNames(setup.logger) });
  });
  return Object.freeze({ ...desk, listen: () => inOptionNames(desk.listen) });
}

/** The same for the command line: options that are resolved already, and errors and log lines that name variables. */
export async function openFrontdesk(setup: Setup): Promise<Frontdesk> {
  const opened = new AsyncDisposableStack();
  try {
    return await open(setup, opened);
  } catch (error) {
    // Why it cannot start says more than what goes wrong while it closes.
    await opened.disposeAsync().catch((err: unknown) => setup.logger.error({ err }, 'a part could not be closed'));
    throw error;
  }
}

/** Adds to `opened`, after each part, how it closes; what was added last closes first. */
async function open(setup: Setup, opened: AsyncDisposableStack): Promise<Frontdesk> {
  const { logger, clock, dormant } = setup;
  const closing = new AbortController();
  let stopMs = setup.settings.shutdownTimeoutMs;
  const timeLeft = createTimeLeft(() => stopMs);
  const basis = await openBasis(setup, { closing: closing.signal, timeLeft }, opened);
  const { configuration, storage, rateLimiting, tracing, clusters } = basis;

  // What answers: the services of this process, the gateway, and the routes that show it.
  const representations = createRepresentations();
  const outageLogs = createOutageLogs({ logger });
  const problems = { representations, logger, outages: outageLogs, toProblem: storage?.toProblem, problemPagesPath };
  const services = createServices(setup, { configuration, storage, problems });
  const gateway = createGatewayHost();
  opened.defer(() => gateway.close(timeLeft()));
  const findFault = createReadiness(setup, { ...basis, database: storage?.database, closing: closing.signal });
  const figures = { clusters, counts: createGatewayCounts(), traffic: createTraffic({ clock }) };
  const own = createOwnRoutes({ ...basis, ...figures, logger, services, gateway, findFault, representations, clock });
  const listenerAddresses = new Map<string, string>();
  const outages = createOutageRegistry({ logger });
  const parts = { ...figures, outages, services, routes: own.routes, limiter: rateLimiting.limiter, listenerAddresses };
  // No part that is added later may throw: a gateway is closed only after it was in force.
  configuration.onChange(function* (next) {
    const made = yield* openGateway(setup, next, parts);
    const named = new Set(made.gateway.parts.table.routes.map(({ service }) => service));
    return () => {
      gateway.replace(made);
      outageLogs.keepOnly(named);
    };
  });

  // What is in front of it: middleware, then listeners.
  const pipeline = createPipeline(setup, { tracing, problems, gateway, auth: services.auth, routes: own.routes });
  const listeners = createListeners(setup, { ...basis, timeLeft, pipeline, listenerAddresses });
  opened.defer(listeners.close);
  opened.defer(configuration.close);
  if (!dormant) await configuration.watch();
  // Not waited for: the service may start later, and the gateway serves other routes until then.
  if (!dormant) void reportSilentServices(setup, configuration.current().configuration, closing.signal);
  // Before the listeners wait for requests in flight, since an event stream would make them wait to the end.
  opened.defer(own.close);
  opened.defer(listeners.drain);
  opened.defer(() => closing.abort());

  const { gateway: app, middleware } = pipeline;
  let closed: Promise<void> | undefined;
  return Object.freeze({
    app,
    middleware,
    demoUsers: demoUsersAmong(setup.configuration.users),
    explain: gateway.explain,
    upgradesThrough: (handler: RequestListener = app.callback()) => listeners.upgradesThrough(handler),
    listen: listeners.open,
    async reload() {
      await Promise.all([configuration.reload(), listeners.renewCertificate()]);
    },
    close({ withinMs = stopMs } = {}) {
      stopMs = withinMs;
      // A second disposeAsync() would not wait for the first.
      closed ??= opened.disposeAsync();
      return closed;
    },
  });
}

/** What a process has under any configuration. */
async function openBasis(
  setup: Setup,
  { closing, timeLeft }: { readonly closing: AbortSignal; readonly timeLeft: TimeLeft },
  opened: AsyncDisposableStack,
) {
  const { settings, logger, dormant } = setup;
  const tls = await loadTls(settings);
  const configuration = createLiveConfiguration(setup);
  const storage = await openStorageIfNeeded(setup);
  opened.defer(() => storage?.database.close());
  const rateLimiting = await openRateLimiting(setup, configuration, closing);
  opened.defer(rateLimiting.close);
  const tracing = dormant ? undefined : await loadTracing({ version: packageVersion(), logger });
  const withoutTracing = tracing?.suppressTracing;
  const clusters = createClusters({ logger, withoutTracing, ...(dormant && { timer: () => () => {} }) });
  // After the listeners: what is left came through a host's server, or is a copy of a request.
  opened.defer(() => clusters.close(timeLeft()));
  const connectionLimit = createConnectionLimit({ max: settings.connectionsMax ?? connectionsMax(), logger });
  return { tls, configuration, storage, rateLimiting, tracing, clusters, connectionLimit };
}

/** One after the other, the parts of a stop have together no more time than one of them may take. */
function createTimeLeft(stopMs: () => number): TimeLeft {
  let endsAtMs: number | undefined;
  return () => {
    endsAtMs ??= performance.now() + Math.min(stopMs(), delayMsMax);
    return Math.max(0, endsAtMs - performance.now());
  };
}

/** A request may need a file for its own connection and one for that to a service; the rest is for all else. */
function connectionsMax(): number {
  return Math.floor(0.45 * openFilesMax());
}
