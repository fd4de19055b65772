/** Collects what a process knows about its cluster: what was read, what became of it, and what was written. */
import type { ObjectVerdict } from '#config';
import type { Cluster, KubernetesState, ObjectCounts, Reports } from '#kubernetes';

export interface ClusterStateParts {
  /** Undefined before the cluster was opened. */
  readonly cluster: Cluster | undefined;
  readonly reports: Reports | undefined;
  /** Empty for all. */
  readonly namespaces: readonly string[];
  readonly deliveries: number;
  /** Those of the last delivery. */
  readonly verdicts: readonly ObjectVerdict[];
  readonly unserved: KubernetesState['unserved'];
}

export function clusterState({
  cluster,
  reports,
  namespaces,
  deliveries,
  verdicts,
  unserved,
}: ClusterStateParts): KubernetesState {
  const none = { succeeded: 0, failed: 0 };
  return {
    namespace: cluster?.namespace ?? '',
    namespaces,
    resources: cluster?.resources() ?? [],
    isRead: deliveries > 0,
    answeredAtMs: cluster?.answeredAtMs(),
    deliveries,
    readFailures: cluster?.failures() ?? 0,
    unread: cluster?.faults() ?? [],
    objects: countObjects(verdicts),
    unserved,
    writes: reports?.writes() ?? { statuses: none, events: none, waiting: 0 },
  };
}

function countObjects(verdicts: readonly ObjectVerdict[]): ObjectCounts {
  const counts = { accepted: 0, 'last-valid': 0, refused: 0 };
  for (const { state } of verdicts) counts[state] += 1;
  return { accepted: counts.accepted, lastValid: counts['last-valid'], refused: counts.refused };
}
