/** What this process knows about the cluster, for the diagnostics, the metrics and the probes. */
import type { UnservedCounts } from '#config';
import type { ReadFault } from './faults.ts';
import type { WriteCounts } from './reports/reports.ts';

/** Plain data, which the main thread sends to others. */
export interface KubernetesState {
  /** That of frontdesk itself. */
  readonly namespace: string;
  /** Those that are read. Empty for all. */
  readonly namespaces: readonly string[];
  /** What is read: `services`, `mappings.gateway.local`. */
  readonly resources: readonly string[];
  /** False until everything has been read for the first time. */
  readonly isRead: boolean;
  /** When the API server last answered, in milliseconds since the epoch. */
  readonly answeredAtMs: number | undefined;
  /** Readings that were complete, and changes after them. */
  readonly deliveries: number;
  /** Lists and watches that failed. */
  readonly readFailures: number;
  /** What cannot be read now. What was read last stays in use. */
  readonly unread: readonly ReadFault[];
  /** Objects with records, by what became of them. */
  readonly objects: ObjectCounts;
  /** Objects of the Gateway API that are not served as a whole. Undefined if they are not read. */
  readonly unserved: UnservedCounts | undefined;
  readonly writes: WriteCounts;
}

export interface ObjectCounts {
  readonly accepted: number;
  /** Refused, with their last valid version in use. */
  readonly lastValid: number;
  readonly refused: number;
}
