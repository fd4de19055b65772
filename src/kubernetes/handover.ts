/** Hands over what was read: all objects whenever one has changed, and the addresses that have changed. */
import { byAge, type ClusterObject } from '#config';
import type { Logger } from '#foundation';
import type { AddressChanges, ObjectChanges } from './addresses.ts';
import { createDelivery } from './delivery.ts';
import { type AddressObject, isService, isSlice, type KeptObject } from './read/objects.ts';

/** All objects that a cluster has, the oldest first. */
export interface ClusterObjects {
  /** Those that have records. */
  readonly records: readonly ClusterObject[];
  /** Those of the Gateway API, and the Namespaces, Secrets and Services that they may refer to. Empty if it is not read. */
  readonly gatewayApi: readonly ClusterObject[];
}

export interface Listeners {
  /**
   * Called with all objects whenever one has changed. Never before everything was listed once, and not again before it
   * has returned. The addresses of the same changes are handed over before.
   */
  readonly onObjects: (objects: ClusterObjects) => void | Promise<void>;
  /** Called with the Services and EndpointSlices that have changed, and the first time with all. */
  readonly onAddresses: (changes: AddressChanges) => void;
}

export interface HandoverOptions extends Listeners {
  readonly logger: Pick<Logger, 'error'>;
  readonly objects: () => readonly KeptObject[];
  /** Whether everything was listed once. */
  readonly isComplete: () => boolean;
}

export function createHandover({ onObjects, onAddresses, logger, objects, isComplete }: HandoverOptions) {
  const changed = new Map<string, AddressChange>();
  let hasAddresses = false;
  let hasObjects = false;
  /** Does not change any more: a kind that is installed later, and that may not be read, must not hold up the others. */
  let wasComplete = false;
  let becomeReady = () => {};
  const ready = new Promise<void>((resolve) => {
    becomeReady = resolve;
  });
  const addressDelivery = createDelivery(() => guarded(handOverAddresses));
  const objectDelivery = createDelivery(async () => {
    await guarded(handOverAddresses);
    await guarded(handOverObjects);
  });

  /** A listener that fails must not stop the reader. It is called again with everything. */
  async function guarded(handOver: () => void | Promise<void>): Promise<void> {
    wasComplete ||= isComplete();
    if (!wasComplete) return;
    try {
      await handOver();
    } catch (err) {
      logger.error({ err }, 'a change in the Kubernetes cluster could not be applied');
    }
  }

  function handOverAddresses(): void {
    const isWhole = !hasAddresses;
    if (isWhole) for (const { address } of objects()) if (address !== undefined) note(address, false);
    if (!isWhole && changed.size === 0) return;
    const changes = [...changed.values()];
    changed.clear();
    hasAddresses = false;
    onAddresses({
      services: changesOf(changes, isService, isWhole),
      slices: changesOf(changes, isSlice, isWhole),
    });
    hasAddresses = true;
  }

  async function handOverObjects(): Promise<void> {
    if (hasObjects) return;
    hasObjects = true;
    try {
      await onObjects(clusterObjects(objects()));
    } catch (error) {
      hasObjects = false;
      throw error;
    }
    becomeReady();
  }

  function note(object: AddressObject, isGone: boolean): void {
    changed.set(`${object.kind} ${object.metadata.namespace}/${object.metadata.name}`, { object, isGone });
  }

  return {
    ready,
    changed(before: KeptObject | undefined, now: KeptObject | undefined): void {
      if (before?.address !== now?.address) {
        if (now?.address !== undefined) note(now.address, false);
        else if (before?.address !== undefined) note(before.address, true);
        addressDelivery.schedule();
      }
      if (before?.record !== now?.record || before?.gatewayApi !== now?.gatewayApi) {
        hasObjects = false;
        objectDelivery.schedule();
      }
    },
    /** Call it when everything may be complete. */
    listed: objectDelivery.schedule,
    async close() {
      await Promise.all([addressDelivery.close(), objectDelivery.close()]);
    },
  };
}

interface AddressChange {
  readonly object: AddressObject;
  readonly isGone: boolean;
}

function changesOf<T extends AddressObject>(
  changes: readonly AddressChange[],
  isOfKind: (object: AddressObject) => object is T,
  isWhole: boolean,
): ObjectChanges<T> {
  const objects = (areGone: boolean) =>
    changes
      .filter(({ isGone }) => isGone === areGone)
      .map(({ object }) => object)
      .filter(isOfKind);
  return { present: objects(false), gone: objects(true), isWhole };
}

export function clusterObjects(kept: readonly KeptObject[]): ClusterObjects {
  return {
    records: kept.flatMap(({ record }) => record ?? []).sort(byAge),
    gatewayApi: kept.flatMap(({ gatewayApi }) => gatewayApi ?? []).sort(byAge),
  };
}
