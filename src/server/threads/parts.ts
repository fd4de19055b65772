/** What a thread of several has in common with the others, which serve the same ports. */
import type { LoginOutcome } from '#auth';
import type { Diagnostics, RowFilter } from '#diag';
import type { KubernetesState } from '#kubernetes';
import type { FamilySnapshot } from '#metrics';
import type { SharedTable } from '#ratelimit';
import type { LiveConfiguration } from '../reload.ts';
import type { CurrentTls } from '../tls/certificates.ts';

export interface ThreadParts {
  /** The number of threads. Each has an equal part of the bounds that clients could otherwise multiply. */
  readonly count: number;
  /** False for a thread that starts after another, and need not repeat what that one has logged about the process. */
  readonly isFirst: boolean;
  /** The configuration that the main thread has accepted. */
  readonly configuration: LiveConfiguration;
  readonly tls: CurrentTls;
  /** The rate-limit counters of all threads. Undefined if they are in Redis, or if no limiter runs in this process. */
  readonly counters: { readonly table: SharedTable; readonly thread: number } | undefined;
  /** Tells the other threads how logins have ended, so that they throttle a guesser as one. */
  readonly logins: {
    readonly publish: (outcome: LoginOutcome) => void;
    readonly subscribe: (learn: (outcome: LoginOutcome) => void) => void;
  };
  /** Makes what this thread reports about itself available to the others. */
  readonly report: (own: Partial<Reports>) => void;
  /** The reports of all threads, merged. */
  readonly all: Reports;
}

/** What the process reports to administrators and to monitoring. */
export interface Reports {
  readonly metrics: () => Promise<readonly FamilySnapshot[]>;
  /** The metrics of the rate-limit service over HTTP. */
  readonly limiterMetrics: () => Promise<readonly FamilySnapshot[]>;
  readonly diagnostics: (filter: RowFilter) => Promise<Diagnostics>;
  /** Resolves to a sentence that says why requests cannot be served, or to undefined. */
  readonly fault: () => Promise<string | undefined>;
  /** Resolves to undefined if the records come from files. */
  readonly kubernetes: () => Promise<KubernetesState | undefined>;
}
