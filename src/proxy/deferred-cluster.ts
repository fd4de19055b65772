/** A cluster that is opened when it is first asked for something: of 10,000 services most wait long for a request. */
import type { Cluster, ClusterSnapshot, ClusterSpec } from './cluster.ts';
import { type ClusterParts, type OpenCluster, openCluster } from './open-cluster.ts';

/** Where health is checked, it is open at once. Opened after its end, it ends its connections with their exchanges. */
export function deferCluster(spec: ClusterSpec, parts: ClusterParts): OpenCluster {
  if (spec.healthCheck !== undefined) return openCluster(spec, parts);
  let opened: OpenCluster | undefined;
  let isClosed = false;

  function ready(): Cluster {
    if (opened === undefined) {
      opened = openCluster(spec, parts);
      if (isClosed) void opened.close();
    }
    return opened.cluster;
  }

  return {
    cluster: Object.freeze({
      attempt: (tried?: readonly string[]) => ready().attempt(tried),
      takeRetry: () => ready().takeRetry(),
      snapshot: () => opened?.cluster.snapshot() ?? unusedSnapshot(spec),
    }),
    async close() {
      isClosed = true;
      await opened?.close();
    },
  };
}

/** Whoever looks does not open it. */
function unusedSnapshot({ service, origins }: ClusterSpec): ClusterSnapshot {
  const rests = { health: 'unknown', activeRequests: 0 } as const;
  return {
    service,
    isUsed: false,
    addresses: [...new Set(origins())].map((origin) => ({ origin, ...rests })),
    circuit: 'closed',
    activeRequests: 0,
    activeRetries: 0,
    overflows: 0,
  };
}
