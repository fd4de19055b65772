/** Collects the reports of all threads, and merges them into those of the process. */
import { kubernetesRow, mergeDiagnostics, threadsRow } from '#diag';
import { trafficBounds } from '#gateway';
import { stopping } from '#http';
import type { KubernetesState } from '#kubernetes';
import { countedIn, type FamilySnapshot, type Metrics, mergeSnapshots } from '#metrics';
import { unreadFault } from '../internal-routes.ts';
import { ThreadEnded } from './calls.ts';
import type { Reports } from './parts.ts';
import type { ServingThread, ThreadPool } from './pool.ts';

export interface AllReportsParts {
  /** How many threads should serve requests. */
  readonly configured: number;
  readonly pool: Pick<ThreadPool, 'serving' | 'ended'>;
  /** The metrics of the main thread. */
  readonly own: Pick<Metrics, 'snapshot'>;
  /** Aborted when the process starts to close. */
  readonly closing: AbortSignal;
  /** Returns milliseconds since the process began to serve. */
  readonly uptimeMs: () => number;
  /** Returns undefined if the records come from files. */
  readonly kubernetes: () => KubernetesState | undefined;
}

export interface AllReports extends Reports {
  /** Keeps what a thread that has ended had counted when the metrics were last read. */
  readonly retire: (thread: ServingThread) => void;
}

export function createAllReports(parts: AllReportsParts): AllReports {
  const { configured, own, closing, uptimeMs, kubernetes } = parts;
  const { serving, ended } = parts.pool;
  const metrics = createSums((thread) => thread.call('metrics'));
  const limiterMetrics = createSums((thread) => thread.call('limiterMetrics'));
  return {
    metrics: () => metrics.read(serving(), own.snapshot()),
    limiterMetrics: () => limiterMetrics.read(serving(), []),
    async diagnostics(filter) {
      const [first, ...others] = await askAll(serving(), (thread) => thread.call('diagnostics', filter));
      if (first === undefined) throw new Error('no thread serves requests');
      return {
        ...mergeDiagnostics([first, ...others], trafficBounds),
        uptime_seconds: Math.floor(uptimeMs() / 1000),
        kubernetes: kubernetesRow(kubernetes()),
        threads: threadsRow({ configured, serving: serving().length, ended: ended() }),
      };
    },
    async fault() {
      if (closing.aborted) return stopping;
      if (serving().length === 0) return 'No thread serves requests.';
      const faults = await askAll(serving(), (thread) => thread.call('fault'));
      return faults.find((fault) => fault !== undefined) ?? unreadFault(kubernetes());
    },
    kubernetes: async () => kubernetes(),
    retire(thread) {
      metrics.retire(thread);
      limiterMetrics.retire(thread);
    },
  };
}

/** Leaves out threads that end in the meantime. */
async function askAll<T>(
  threads: readonly ServingThread[],
  ask: (thread: ServingThread) => Promise<T>,
): Promise<readonly T[]> {
  const answers = await Promise.all(
    threads.map((thread) =>
      ask(thread).then(
        (answer) => [answer],
        (error) => {
          if (error instanceof ThreadEnded) return [];
          throw error;
        },
      ),
    ),
  );
  return answers.flat();
}

/** Sums the metrics of all threads and, for each counter, what threads that have ended had counted. */
function createSums(ask: (thread: ServingThread) => Promise<readonly FamilySnapshot[]>) {
  const latest = new Map<ServingThread, readonly FamilySnapshot[]>();
  let retired: readonly FamilySnapshot[] = [];
  return {
    async read(threads: readonly ServingThread[], own: readonly FamilySnapshot[]) {
      const found = await askAll(threads, async (thread) => {
        const snapshot = await ask(thread);
        latest.set(thread, snapshot);
        return snapshot;
      });
      return mergeSnapshots([own, ...found, retired]);
    },
    retire(thread: ServingThread): void {
      retired = mergeSnapshots([retired, countedIn(latest.get(thread) ?? [])]);
      latest.delete(thread);
    },
  };
}
