/** The threads that serve requests: starts them, gives them each new configuration, and replaces one that ends. */
import { EventEmitter, once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import type { Worker } from 'node:worker_threads';
import type { LoginOutcome } from '#auth';
import type { Configuration, Tls } from '#config';
import { createTurns, delayMsMax, type InTurn, type Logger, messageOf } from '#foundation';
import { releaseLocksOf } from '#ratelimit';
import type { ClusterAddresses } from '../kubernetes/addresses.ts';
import type { CloseOptions, Listeners } from '../options.ts';
import { withPortsOf } from '../ports.ts';
import type { Commit } from '../reload.ts';
import { type Calls, createCalls, ThreadEnded } from './calls.ts';
import { endThread } from './end-thread.ts';
import { type ReloadState, splitConfiguration } from './received-configuration.ts';
import type { MainFunctions, ThreadFunctions, ThreadStart } from './thread.ts';

export interface PoolOptions {
  readonly count: number;
  readonly logger: Pick<Logger, 'info' | 'error'>;
  /** The setting of this name, which adds to the time that closing may take. */
  readonly drainMs: number;
  /** Whether the others wait until the first thread has opened, because it prepares the database or its port is 0. */
  readonly firstAlone: boolean;
  /** Starts a thread that runs `openThread`. */
  readonly start: (start: ThreadStart) => Worker;
  /** What all threads need to start, now or later. */
  readonly common: () => Omit<ThreadStart, 'number'>;
  /** Those in `common`, whose changes each thread gets. */
  readonly clusterAddresses?: Pick<ClusterAddresses, 'onChange'> | undefined;
  /** Returns milliseconds since the epoch. */
  readonly clock: () => number;
}

/** What the threads may call. */
export interface PoolFunctions extends Omit<MainFunctions, 'opened' | 'failed' | 'publishLogin'> {
  /** Called when a thread has ended that was not closed. */
  readonly onLost: (thread: ServingThread) => void;
}

/** A thread that has opened its listeners. */
export interface ServingThread {
  /** As in its `ThreadStart`. */
  readonly number: number;
  readonly call: Calls<ThreadFunctions>['call'];
}

/** A thread that has ended although it was not closed. */
export interface EndedThread {
  readonly number: number;
  /** Milliseconds since the epoch. */
  readonly atMs: number;
  readonly cause: unknown;
}

const endedMax = 5;

export interface ThreadPool {
  /** Starts all threads. Rejects with a user-facing Error. */
  readonly open: (functions: PoolFunctions) => Promise<Listeners>;
  readonly serving: () => readonly ServingThread[];
  /** The threads that have ended although they were not closed, latest first, at most 5, and how many there were. */
  readonly ended: () => { readonly latest: readonly EndedThread[]; readonly total: number };
  /** Prepares all threads for a configuration. Rejects if one of them cannot use it. */
  readonly prepare: (configuration: Configuration) => Promise<Commit>;
  /** Resolves when all threads use the configuration that was committed last. */
  readonly whenCommitted: () => Promise<void>;
  readonly report: (state: ReloadState) => void;
  readonly replaceCertificates: (tls: Tls) => Promise<void>;
  /** Closes all threads. Rejects with the first error if closing one failed. */
  readonly close: (options: Required<CloseOptions>) => Promise<void>;
}

export function createThreadPool(options: PoolOptions): ThreadPool {
  const { count, logger, drainMs, firstAlone, common, clock } = options;
  const serving = new Set<Thread>();
  const running = new Set<Thread>();
  const mayStart = createBackoff();
  const closing = new AbortController();
  let started = 0;
  /** Those of the first thread that has opened: the others listen on the same ports. */
  let shared: Listeners | undefined;
  let ended: ReturnType<ThreadPool['ended']> = { latest: [], total: 0 };
  let committed: Promise<unknown> = Promise.resolve();

  /** Resolves when the thread serves requests. */
  async function startThread(functions: PoolFunctions): Promise<Listeners> {
    started += 1;
    const given = common();
    const settings = shared ? withPortsOf(given.settings, shared) : given.settings;
    const start = { ...given, settings, number: started };
    const worker = options.start(start);
    const publishLogin = (outcome: LoginOutcome) => tellOthers(start.number, outcome);
    const thread = openThreadOf(worker, start.number, { ...functions, publishLogin });
    running.add(thread);
    void thread.ended.then((cause) => {
      if (start.table !== undefined) releaseLocksOf(start.table, start.number);
      onEnd(thread, cause, functions);
    });
    const listeners = await thread.opened;
    shared ??= listeners;
    serving.add(thread);
    await catchUp(thread, start);
    return listeners;
  }

  function onEnd(thread: Thread, cause: unknown, functions: PoolFunctions): void {
    running.delete(thread);
    if (!serving.delete(thread) || closing.signal.aborted) return;
    const latest = [{ number: thread.number, atMs: clock(), cause }, ...ended.latest].slice(0, endedMax);
    ended = { latest, total: ended.total + 1 };
    functions.onLost(thread);
    logger.error(
      { err: cause, threads: serving.size },
      'a thread has ended, so its requests are lost: another one starts',
    );
    void replace(functions);
  }

  /** Tries until a thread serves requests, or the process closes. */
  async function replace(functions: PoolFunctions): Promise<void> {
    for (let hasStarted = false; !hasStarted; ) {
      await mayStart(closing.signal);
      if (closing.signal.aborted) return;
      hasStarted = await tryToReplace(functions);
    }
  }

  async function tryToReplace(functions: PoolFunctions): Promise<boolean> {
    try {
      await startThread(functions);
      logger.info({ threads: serving.size }, 'a thread has started in place of one that has ended');
      return true;
    } catch (err) {
      const message = 'a thread cannot start in place of one that has ended: trying again';
      if (!closing.signal.aborted) logger.error({ err, threads: serving.size }, message);
      return false;
    }
  }

  /**
   * Resolves to the threads that have prepared the configuration. Rejects if one cannot, or if one has ended in the
   * meantime: the configuration may be the reason.
   */
  async function sendToAll(configuration: Configuration): Promise<ReadonlySet<Thread>> {
    const threads = new Set(serving);
    const sent = await Promise.allSettled(
      [...threads].map((thread) => thread.inTurn(() => send(thread, configuration))),
    );
    for (const one of sent) if (one.status === 'rejected') throw one.reason;
    if (threads.size === 0) throw new ThreadEnded();
    return threads;
  }

  function tellOthers(sender: number, outcome: LoginOutcome): void {
    for (const thread of serving) if (thread.number !== sender) void thread.call('learnLogin', outcome).catch(() => {});
  }

  /** Gives a thread what has changed since its start. Ends the thread if that fails, so that another one starts. */
  async function catchUp(thread: Thread, since: Pick<ThreadStart, 'generation' | 'tls' | 'addresses'>): Promise<void> {
    const { generation, tls, state } = common();
    const { configuration, ...name } = generation;
    sendAddresses(thread, since);
    try {
      await thread.call('report', state);
      if (tls !== undefined && tls !== since.tls) await thread.call('replaceCertificates', tls);
      if (generation.number === since.generation.number) return;
      await thread.inTurn(async () => {
        await send(thread, configuration);
        await thread.call('commit', name);
      });
    } catch {
      await endThread(thread.worker);
    }
  }

  /** Posts all addresses before any later change. The calls of a thread are in order. */
  function sendAddresses(thread: Thread, since: Pick<ThreadStart, 'addresses'>): void {
    const { addresses } = common();
    if (addresses === undefined || addresses === since.addresses) return;
    thread.call('replaceAddresses', addresses).catch(() => endThread(thread.worker));
  }

  return {
    serving: () => [...serving],
    ended: () => ended,
    async open(functions) {
      options.clusterAddresses?.onChange((changes) => {
        for (const thread of serving) thread.call('changeAddresses', changes).catch(() => endThread(thread.worker));
      });
      const first = startThread(functions);
      if (firstAlone) await first;
      const [listeners] = await Promise.all([
        first,
        ...Array.from({ length: count - 1 }, () => startThread(functions)),
      ]);
      return listeners;
    },
    async prepare(configuration: Configuration) {
      const before = common();
      const threads = await sendToAll(configuration).catch((error) => {
        if (error instanceof ThreadEnded) return sendToAll(configuration);
        throw error;
      });
      return (generation) => {
        const { configuration: _, ...name } = generation;
        const commit = (thread: Thread) => thread.call('commit', name).catch(() => endThread(thread.worker));
        committed = Promise.all(
          [...serving].map((thread) => (threads.has(thread) ? commit(thread) : catchUp(thread, before))),
        );
      };
    },
    async whenCommitted() {
      await committed;
    },
    report(state) {
      for (const thread of serving) void thread.call('report', state).catch(() => {});
    },
    async replaceCertificates(tls) {
      await Promise.all(
        [...serving].map((thread) => thread.call('replaceCertificates', tls).catch(rethrowUnlessEnded)),
      );
    },
    async close(closeOptions) {
      closing.abort();
      const closed = await Promise.allSettled([...running].map((thread) => closeThread(thread, drainMs, closeOptions)));
      for (const one of closed) if (one.status === 'rejected') throw one.reason;
    },
  };
}

interface Thread extends ServingThread {
  readonly worker: Worker;
  readonly opened: Promise<Listeners>;
  /** Resolves to the cause when the thread has ended. */
  readonly ended: Promise<unknown>;
  /** Runs what changes the configuration of the thread, one after the other. */
  readonly inTurn: InTurn;
}

function openThreadOf(worker: Worker, number: number, functions: Omit<MainFunctions, 'opened' | 'failed'>): Thread {
  const opening = new EventEmitter<{ opened: [Listeners]; error: [Error] }>();
  const calls = createCalls<ThreadFunctions>(worker, {
    ...functions,
    opened: (listeners: Listeners) => opening.emit('opened', listeners),
    failed: (message: string) => opening.emit('error', new Error(message)),
  });
  const opened = once(opening, 'opened').then(([listeners]): Listeners => listeners);
  opened.catch(() => {});
  // After the first error, or when it has opened, an error has no listener, which must not end the process.
  opening.on('error', () => {});
  let cause: unknown;
  worker.once('error', (error) => {
    cause = error;
  });
  const ended = new Promise<unknown>((resolve) => {
    worker.once('exit', (code) => {
      cause ??= new Error(`the thread has exited with code ${code}`);
      calls.end();
      opening.emit('error', new Error(`a thread cannot start: ${messageOf(cause)}`, { cause }));
      resolve(cause);
    });
  });
  return { number, worker, ended, opened, call: calls.call, inTurn: createTurns() };
}

/** The thread that takes the place of one that has ended starts with what is current. */
function rethrowUnlessEnded(error: unknown): void {
  if (!(error instanceof ThreadEnded)) throw error;
}

/** Sends the configuration in parts, and waits until the thread has prepared it. */
async function send(thread: Thread, configuration: Configuration): Promise<void> {
  for (const part of splitConfiguration(configuration)) await thread.call('receive', part);
  await thread.call('prepare');
}

/** How long a thread may take after its last request to close its database and to write the end of its log. */
const lastStepsMs = 3000;

/** Ends a thread that hangs, because it would keep the process from ending. */
async function closeThread(thread: Thread, drainMs: number, options: Required<CloseOptions>): Promise<void> {
  const { withinMs = 0 } = options;
  const killAfterMs = Math.min(drainMs + withinMs + lastStepsMs, delayMsMax);
  const timer = setTimeout(() => void endThread(thread.worker), killAfterMs);
  try {
    const isOpen = await thread.opened.then(
      () => true,
      () => false,
    );
    if (isOpen) await thread.call('close', options);
  } finally {
    clearTimeout(timer);
    await endThread(thread.worker);
  }
}

const firstDelayMs = 100;
const delayMsMaxOfBackoff = 10_000;
const calmMs = 60_000;

/** Returns a function that waits before a thread is started: not at all for the first one in a minute, then ever longer. */
function createBackoff(): (signal: AbortSignal) => Promise<void> {
  let endsMs: readonly number[] = [];
  return async (signal) => {
    const nowMs = performance.now();
    endsMs = [...endsMs.filter((endMs) => nowMs - endMs < calmMs), nowMs];
    const delayMs = endsMs.length === 1 ? 0 : Math.min(delayMsMaxOfBackoff, firstDelayMs * 2 ** (endsMs.length - 2));
    await delay(delayMs, undefined, { signal, ref: false }).catch(() => {});
  };
}
