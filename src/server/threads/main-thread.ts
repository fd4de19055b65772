/** The main thread of a process with several: owns the configuration, the certificate, the admin port and the threads. */
import type { Worker } from 'node:worker_threads';
import { demoUsersAmong, hostForClients, loadTls, packageVersion, type Tls } from '#config';
import { problemPagesPath } from '#diag';
import { createOutageLogs, equalPart } from '#foundation';
import { createCompression, createRepresentations, serveHttp } from '#http';
import { createMainThreadMetrics, createMetricsOfThreads, createMetricsRoute, type Metrics } from '#metrics';
import { createSharedTable, type SharedTable } from '#ratelimit';
import { moduleNames } from '#server/product';
import { travelModules } from '#travel';
import { createCurrentGateway } from '../current-gateway.ts';
import { createShutdown, openOrClose } from '../frontdesk.ts';
import { createReadiness, probeRoute } from '../internal-routes.ts';
import { createConnectionLimits } from '../listeners.ts';
import type { Frontdesk, Listening, Setup } from '../options.ts';
import { createPipeline } from '../pipeline.ts';
import { bindingsOf, claimPorts, sharesPickedPort } from '../ports.ts';
import { type LiveConfiguration, openLiveConfiguration } from '../reload.ts';
import { type CurrentTls, certificatesOf, createLiveCertificates, withCertificates } from '../tls/certificates.ts';
import { type AllReports, createAllReports } from './all-reports.ts';
import type { Reports } from './parts.ts';
import { createThreadPool, type PoolFunctions, type ThreadPool } from './pool.ts';
import type { ReloadState } from './received-configuration.ts';
import type { MainFunctions, ThreadStart } from './thread.ts';

export interface ThreadsOptions {
  /** The number of threads that serve requests, in addition to this one. */
  readonly count: number;
  /** Starts a thread that runs `openThread`. */
  readonly start: (start: ThreadStart) => Worker;
  readonly write: MainFunctions['write'];
}

/** A desk of several threads, which has no middleware for another app. */
export type ThreadedDesk = Pick<Frontdesk, 'listen' | 'reload' | 'close' | 'demoUsers'>;

/** Claims the ports and starts the threads. Rejects with a user-facing Error. */
export function openThreads(setup: Setup, options: ThreadsOptions): Promise<ThreadedDesk> {
  return openOrClose(setup, (opened) => open(setup, options, opened));
}

async function open(setup: Setup, options: ThreadsOptions, opened: AsyncDisposableStack): Promise<ThreadedDesk> {
  const { settings: given } = setup;
  const tls: CurrentTls = { current: await loadTls(given) };
  const records = await openLiveConfiguration(setup);
  const onChange = () => pool.report(stateOf(configuration));
  const certificates = createLiveCertificates(setup, { tls, records, onChange });
  const configuration = withCertificates(records, certificates);
  await claimPorts(setup);
  const start = startOf(setup, options.count);
  const closing = new AbortController();
  const pool = createThreadPool({
    ...setup,
    ...options,
    drainMs: given.drainMs,
    firstAlone: travelModules.some(setup.has) || sharesPickedPort(setup),
    common: () => ({ ...start, ...currentOf(setup, configuration, tls) }),
  });
  const reports = createAllReports({
    configured: options.count,
    pool,
    own: createOwnMetrics(setup, { pool, configuration, tls }),
    closing: closing.signal,
    uptimeMs: createUptime(),
    kubernetes: configuration.kubernetes,
  });
  // Closed last, so that the process can be monitored until its last request has finished.
  const ofAdmin = opened.use(new AsyncDisposableStack());
  const { stopMs, timeLeft, close } = createShutdown(setup, opened);
  opened.defer(() => pool.close({ withinMs: stopMs() }));
  opened.defer(configuration.close);
  opened.defer(certificates.close);
  opened.defer(() => closing.abort());
  const shared = await pool.open(functionsOf(reports, options.write));
  configuration.onChange(pool.prepare);
  configuration.afterReload(() => pool.report(stateOf(configuration)));
  await Promise.all([configuration.watch(), certificates.watch(replaceWith(pool, tls))]);
  // Opened last, so that a successful probe means that the other ports can be called.
  const admin = await openAdmin(setup, configuration, reports);
  ofAdmin.defer(() => admin?.close(timeLeft()));
  const listeners = { ...shared, admin: admin?.listening };

  return Object.freeze({
    demoUsers: demoUsersAmong(setup.loaded.configuration.users),
    listen: async () => listeners,
    async reload() {
      await Promise.all([configuration.reload(), certificates.reload()]);
      await pool.whenCommitted();
    },
    close,
  });
}

function replaceWith(pool: Pick<ThreadPool, 'replaceCertificates'>, tls: CurrentTls) {
  return async (found: Tls) => {
    await pool.replaceCertificates(found);
    tls.current = found;
  };
}

interface OwnMetricsParts {
  readonly pool: Pick<ThreadPool, 'serving'>;
  readonly configuration: LiveConfiguration;
  readonly tls: CurrentTls;
}

function createOwnMetrics({ logger, clock }: Setup, { pool, configuration, tls }: OwnMetricsParts): Metrics {
  return createMainThreadMetrics({
    version: packageVersion(),
    threads: () => pool.serving().length,
    clock,
    configuration,
    certificates: () => certificatesOf(tls),
    droppedLogLines: logger.droppedLines,
  });
}

function createUptime(): () => number {
  const startedAtMs = performance.now();
  return () => performance.now() - startedAtMs;
}

function stateOf({ refused, errors, notices, reloads }: LiveConfiguration): ReloadState {
  return { refused: refused(), errors: errors(), notices: notices(), reloads: reloads() };
}

/** What may change while threads start. */
function currentOf({ clusterAddresses }: Setup, configuration: LiveConfiguration, tls: CurrentTls) {
  return {
    generation: configuration.current(),
    state: stateOf(configuration),
    tls: tls.current,
    addresses: clusterAddresses?.snapshot(),
  };
}

/** Undefined if the rate-limit counters are in Redis, or if no limiter runs in this process. */
function createTableFor({ settings, has }: Setup): SharedTable | undefined {
  if (!has('ratelimit') || settings.redisUrl !== undefined) return undefined;
  return createSharedTable(settings.ratelimitKeysMax);
}

/** The main thread has the admin port, and each thread an equal part of the connections to the database. */
function startOf(setup: Setup, count: number) {
  const { settings, has, demo, configDirectory, traceVariables = {} } = setup;
  return {
    count,
    demo,
    traceVariables,
    configDirectory,
    modules: moduleNames.filter(has),
    settings: { ...settings, adminPort: undefined, databasePool: equalPart(settings.databasePool, count) },
    table: createTableFor(setup),
  };
}

function functionsOf(reports: AllReports, write: MainFunctions['write']): PoolFunctions {
  return {
    write,
    onLost: reports.retire,
    allMetrics: reports.metrics,
    allLimiterMetrics: reports.limiterMetrics,
    allDiagnostics: reports.diagnostics,
    anyFault: reports.fault,
    kubernetes: reports.kubernetes,
  };
}

interface AdminListener {
  readonly listening: Listening;
  readonly close: (deadlineMs: number) => Promise<void>;
}

/** Undefined without an admin port. */
async function openAdmin(
  setup: Setup,
  configuration: LiveConfiguration,
  reports: Reports,
): Promise<AdminListener | undefined> {
  const { settings, logger } = setup;
  const { port, ...binding } = bindingsOf(settings).admin;
  if (port === undefined) return undefined;
  const representations = createRepresentations();
  const routes = [
    probeRoute('check_alive', representations, async () => ({ status: 'alive' })),
    probeRoute('check_ready', representations, createReadiness(reports, configuration)),
    createMetricsRoute(createMetricsOfThreads(reports.metrics)),
  ];
  const problems = { representations, logger, outages: createOutageLogs({ logger }), problemPagesPath };
  const parts = {
    tracing: undefined,
    auth: undefined,
    gateway: createCurrentGateway(),
    problems,
    routes,
    configuration,
    state: { compression: createCompression() },
  };
  const server = await serveHttp({
    ...settings,
    ...binding,
    port,
    logger,
    handler: createPipeline(setup, parts).admin.callback(),
    responseIdleTimeoutMs: settings.upstreamIdleTimeoutMs,
    connectionShare: createConnectionLimits(setup).adminConnectionLimit.share(),
  });
  const { host } = binding;
  return {
    listening: { host, port: server.port, url: `http://${hostForClients(host)}:${server.port}` },
    close: server.close,
  };
}
