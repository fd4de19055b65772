/** How many threads serve requests, and how `serve` starts one. */
import { availableParallelism, totalmem } from 'node:os';
import { extname } from 'node:path';
import { getHeapStatistics } from 'node:v8';
import { Worker } from 'node:worker_threads';
import type { Setup, ThreadStart } from '#server';
import { travelModules } from '#travel';

export interface ThreadCountOptions {
  /** The setting of this name. */
  readonly threads: number | undefined;
  /** Whether `--demo` was given: a demo on a laptop should be small. */
  readonly demo: boolean;
  readonly setup: Pick<Setup, 'settings' | 'has' | 'logger'>;
  /** What the system has. @default this system */
  readonly system?: System;
}

export interface System {
  readonly platform: string;
  /** The cores that the process may use. */
  readonly cores: number;
  /** The memory that the process may use, in bytes. */
  readonly memory: number;
}

/** Chooses the number of threads, and logs why it is 1 if the setting says more. */
export function countThreads({ setup, ...options }: ThreadCountOptions): number {
  const { threads } = options;
  const { count, reason } = chooseThreads({ ...options, ...setup });
  if (threads !== undefined && threads > count)
    setup.logger.warn({ threads }, `requests are served by one thread: ${reason}`);
  return count;
}

export interface ThreadChoice {
  readonly count: number;
  /** A clause without a capital letter and a full stop. */
  readonly reason: string;
}

type ThreadChoiceOptions = Omit<ThreadCountOptions, 'setup'> & Pick<Setup, 'settings' | 'has'>;

/** Chooses the number of threads, and says why. */
export function chooseThreads(options: ThreadChoiceOptions): ThreadChoice {
  const { threads, demo, system = thisSystem() } = options;
  const obstacle = obstacleTo(options, system);
  if (obstacle !== undefined) return { count: 1, reason: obstacle };
  if (threads !== undefined) return { count: threads, reason: 'THREADS says so' };
  if (demo) return { count: 1, reason: 'the demo should be small; THREADS allows more' };
  const count = threadsFor(system);
  return { count, reason: count < system.cores ? 'no more fit into the memory' : 'one for each core' };
}

/** A thread needs about 70 MB when it is idle. */
const bytesOfThread = 128 * 1024 * 1024;
const bytesOfMainThread = 128 * 1024 * 1024;

function threadsFor({ cores, memory }: System): number {
  return Math.max(1, Math.min(cores, Math.floor((memory - bytesOfMainThread) / bytesOfThread)));
}

function thisSystem(): System {
  // Without a limit, the first is 0 or more than there is.
  const memory = Math.min(process.constrainedMemory() || Number.POSITIVE_INFINITY, totalmem());
  return { platform: process.platform, cores: availableParallelism(), memory };
}

/** The systems on which several sockets can listen on a port and share its connections. */
const systemsWithReusePort: readonly string[] = ['linux', 'freebsd', 'dragonfly', 'sunos', 'aix'];

/** Explains why several threads cannot serve the same ports. Undefined if they can. */
function obstacleTo({ settings, has }: Pick<Setup, 'settings' | 'has'>, { platform }: System): string | undefined {
  if (!systemsWithReusePort.includes(platform)) return `${platform} does not distribute the connections of a port`;
  if (settings.databaseUrl === 'sqlite::memory:' && travelModules.some(has))
    return 'each would have its own database in memory (DATABASE_URL)';
  return undefined;
}

/**
 * In megabytes, as much as a process has for its only thread. `collectBuffersEarly` would otherwise make it 24 for
 * threads.
 */
const maxYoungGenerationSizeMb = 192;

/** The thread may use as much memory as this one, whose bound V8 has chosen by the memory limit of the process. */
export function startThread(start: ThreadStart): Worker {
  const maxOldGenerationSizeMb = getHeapStatistics().heap_size_limit / 1024 / 1024;
  return new Worker(new URL(`./thread${extname(import.meta.url)}`, import.meta.url), {
    workerData: start,
    resourceLimits: { maxYoungGenerationSizeMb, maxOldGenerationSizeMb },
  });
}
