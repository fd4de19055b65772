/** A thread of several that serve the same ports: opens a frontdesk from what the main thread has accepted. */
import type { LoginOutcome } from '#auth';
import type { Tls } from '#config';
import { type CountingLogger, createSafeLogger } from '#foundation';
import type { ChangedService, ServiceAddresses } from '#kubernetes';
import type { SharedTable } from '#ratelimit';
import type { ModuleName, Settings } from '#server/product';
import type { TraceVariables } from '#tracing';
import { openPart } from '../frontdesk.ts';
import { createClusterAddresses } from '../kubernetes/addresses.ts';
import type { CloseOptions, Listeners, Setup } from '../options.ts';
import type { Generation } from '../reload.ts';
import { type CallPort, type Calls, createCalls } from './calls.ts';
import type { Reports, ThreadParts } from './parts.ts';
import {
  type ConfigurationFunctions,
  createReceivedConfiguration,
  type ReloadState,
} from './received-configuration.ts';

/** What a thread needs to start, as plain data. */
export interface ThreadStart {
  readonly count: number;
  /** 1 for the first thread, incremented by each one that starts. */
  readonly number: number;
  /** Undefined if the rate-limit counters are in Redis, or if no limiter runs in this process. */
  readonly table: SharedTable | undefined;
  readonly settings: Settings;
  readonly generation: Generation;
  readonly state: ReloadState;
  readonly tls: Tls | undefined;
  /** The addresses of a cluster's Services. Undefined if the records do not come from a cluster. */
  readonly addresses: readonly ServiceAddresses[] | undefined;
  readonly modules: readonly ModuleName[];
  readonly demo: boolean;
  readonly traceVariables: TraceVariables;
  readonly configDirectory: string | undefined;
}

/** The functions that the main thread calls. */
export interface ThreadFunctions extends ConfigurationFunctions, Reports {
  readonly learnLogin: (outcome: LoginOutcome) => void;
  readonly replaceCertificates: (tls: Tls) => Promise<void>;
  readonly changeAddresses: (changes: readonly ChangedService[]) => void;
  readonly replaceAddresses: (all: readonly ServiceAddresses[]) => void;
  readonly close: (options: CloseOptions) => Promise<void>;
}

/** The functions that a thread calls. */
export interface MainFunctions {
  /** Reports that the thread serves requests. */
  readonly opened: (listeners: Listeners) => void;
  /** Reports why it cannot. */
  readonly failed: (message: string) => void;
  /** Writes lines of the log. Resolves when the reader has taken them. */
  readonly write: (block: Uint8Array) => Promise<void>;
  readonly publishLogin: (outcome: LoginOutcome) => void;
  readonly allMetrics: Reports['metrics'];
  readonly allLimiterMetrics: Reports['limiterMetrics'];
  readonly allDiagnostics: Reports['diagnostics'];
  readonly anyFault: Reports['fault'];
  readonly kubernetes: Reports['kubernetes'];
}

export interface ThreadConnection {
  readonly main: Calls<MainFunctions>;
  /** Offers functions to the main thread. */
  readonly offer: (functions: Partial<ThreadFunctions>) => void;
}

export function connectToMain(port: CallPort): ThreadConnection {
  const offered: Partial<ThreadFunctions> = {};
  return { main: createCalls<MainFunctions>(port, offered), offer: (more) => void Object.assign(offered, more) };
}

export interface ThreadOptions extends ThreadConnection {
  readonly logger: CountingLogger;
  /** Called after everything has been closed. */
  readonly flushLog: () => Promise<void>;
}

/** Resolves when the thread serves requests. Rejects with a user-facing Error. */
export async function openThread(start: ThreadStart, { main, offer, logger, flushLog }: ThreadOptions): Promise<void> {
  const { count, number, table, tls, generation, state } = start;
  const isFirst = number === 1;
  const { live, functions } = createReceivedConfiguration(generation, state);
  const all: Reports = {
    metrics: () => main.call('allMetrics'),
    limiterMetrics: () => main.call('allLimiterMetrics'),
    diagnostics: (filter) => main.call('allDiagnostics', filter),
    fault: () => main.call('anyFault'),
    kubernetes: () => main.call('kubernetes'),
  };
  const parts: ThreadParts = {
    count,
    isFirst,
    configuration: live,
    tls: { current: tls },
    counters: table && { table, thread: number },
    logins: {
      publish: (outcome) => void main.call('publishLogin', outcome),
      subscribe: (learnLogin) => offer({ learnLogin }),
    },
    report: offer,
    all,
  };
  let isOpen = isFirst;
  // What the start says about the process is in the log already.
  const lines = fromOpening(createSafeLogger(logger), () => isOpen);
  const setup = setupOf(start, live.current(), lines);
  const { clusterAddresses } = setup;
  const { desk, replaceCertificates } = await openPart(setup, parts);
  const listeners = await desk.listen();
  isOpen = true;
  offer({
    ...functions,
    replaceCertificates,
    ...(clusterAddresses && {
      changeAddresses: clusterAddresses.apply,
      replaceAddresses: clusterAddresses.replace,
    }),
    async close(options) {
      await desk.close(options);
      await flushLog();
    },
  });
  await main.call('opened', listeners);
}

function setupOf(start: ThreadStart, { configuration }: Generation, logger: CountingLogger): Setup {
  const { settings, demo, configDirectory, modules, addresses, traceVariables } = start;
  const clusterAddresses = addresses && createClusterAddresses();
  clusterAddresses?.replace(addresses ?? []);
  return {
    settings,
    demo,
    traceVariables,
    landingPage: false,
    configDirectory,
    logger,
    loaded: { configuration, errors: [], notices: [] },
    clock: Date.now,
    services: {},
    dormant: false,
    clusterAddresses,
    has: (name) => modules.includes(name),
    areModulesChosen: true,
    notices: async () => [],
  };
}

/** Leaves out lines below `error` until `isOpen`. The functions of `logger` must not need `this`. */
function fromOpening(logger: CountingLogger, isOpen: () => boolean): CountingLogger {
  return {
    ...logger,
    info: (fields, message) => isOpen() && logger.info(fields, message),
    warn: (fields, message) => isOpen() && logger.warn(fields, message),
  };
}
