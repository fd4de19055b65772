/** What cannot be read from the cluster now, since when and why, for diagnostics and the log. */
import { createOutageLog, type Logger } from '#foundation';
import type { FailedResource } from './api/failure.ts';

export interface ReadFault {
  /** `mappings.gateway.local`, or `services in the namespace shop`. */
  readonly resource: string;
  /** Says what to do. */
  readonly message: string;
  /** Since when, in milliseconds since 1970. */
  readonly sinceMs: number;
}

export interface FaultOptions {
  readonly logger: Pick<Logger, 'info' | 'warn'>;
  /** Milliseconds since 1970. */
  readonly clock: () => number;
  readonly describe: (error: unknown, failed: FailedResource) => string;
  /** Whether everything has been read once. */
  readonly isRead: () => boolean;
}

export function createFaults({ logger, clock, describe, isRead }: FaultOptions) {
  const byResource = new Map<string, ReadFault>();
  const outage = createOutageLog({ logger, ended: 'the Kubernetes cluster can be read again' });
  let failures = 0;
  let answeredAtMs: number | undefined;

  return {
    failed(failed: FailedResource, error: unknown): void {
      const reason = describe(error, failed);
      failures += 1;
      const resource = describeResource(failed);
      const { sinceMs } = byResource.get(resource) ?? { sinceMs: clock() };
      byResource.set(resource, { resource, message: reason, sinceMs });
      const meanwhile = isRead() ? 'what was read last stays in use' : 'until it can, every request gets 503';
      outage.failed({ resource, reason }, `the Kubernetes cluster cannot be read: ${meanwhile}`);
    },
    recovered(failed: FailedResource): void {
      byResource.delete(describeResource(failed));
      if (byResource.size === 0) outage.answered();
    },
    answered(): void {
      answeredAtMs = clock();
    },
    current: (): readonly ReadFault[] => [...byResource.values()],
    failures: () => failures,
    answeredAtMs: () => answeredAtMs,
  };
}

function describeResource({ resource, namespace }: FailedResource): string {
  return namespace === undefined ? resource : `${resource} in the namespace ${namespace}`;
}
