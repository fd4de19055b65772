/** What a configuration is made of: the last reading of the files, and that of the cluster if there is one. */
import {
  type AcceptedObjects,
  type ConfigurationWatch,
  type LoadedConfiguration,
  nothingRead,
  type ServedCertificate,
  watchConfiguration,
} from '#config';
import { createTurns } from '#foundation';
import type { KubernetesState } from '#kubernetes';
import type { Setup } from '../options.ts';
import { openClusterRecords } from './cluster-records.ts';
import { withCluster } from './with-cluster.ts';

export interface Sources {
  /** Both together. */
  readonly loaded: () => LoadedConfiguration;
  /** Undefined without a cluster. */
  readonly ofCluster: () => AcceptedObjects | undefined;
  /** The certificates of the cluster. Undefined without a cluster, and before it has been read. */
  readonly certificates: () => readonly ServedCertificate[] | undefined;
  /** Undefined without a cluster. */
  readonly state: () => KubernetesState | undefined;
  /** Starts watching. `onChange` is not called again before it has settled. Does nothing for records of a program. */
  readonly watch: (onChange: OnChange) => Promise<void>;
  /** Reads the files now, if they are watched. */
  readonly reload: () => Promise<void>;
  readonly close: () => Promise<void>;
}

/**
 * `startedAtMs` is the time of `performance.now()` when the reading started. Resolves to what was thrown if a part of the
 * server cannot use the configuration, or else to undefined.
 */
type OnChange = (startedAtMs: number) => Promise<unknown>;

/** Rejects with a user-facing Error if there is no cluster to read from. */
export async function openSources(setup: Setup): Promise<Sources> {
  const { configDirectory, settings, logger } = setup;
  const cluster = settings.kubernetes ? await openClusterRecords(setup) : undefined;
  let files = setup.loaded;
  let ofCluster = cluster?.initial;
  let watching: Promise<ConfigurationWatch> | undefined;
  return Object.freeze({
    loaded: () => withCluster(files, ofCluster),
    ofCluster: () => ofCluster,
    certificates: () => (ofCluster === nothingRead ? undefined : ofCluster?.certificates),
    state: () => cluster?.state(),
    async watch(onChange: OnChange) {
      // The files and the cluster may change at the same time.
      const inTurn = createTurns();
      const apply = (startedAtMs: number) => inTurn(() => onChange(startedAtMs));
      await cluster?.start((accepted, startedAtMs) => {
        ofCluster = accepted;
        return apply(startedAtMs);
      });
      if (configDirectory === undefined) return;
      watching = watchConfiguration({
        directory: configDirectory,
        gatewayDomain: settings.gatewayDomain,
        strictPaths: settings.strictPaths,
        initial: setup.loaded,
        async onChange(loaded, startedAtMs) {
          files = loaded;
          await apply(startedAtMs);
        },
        onError: (error) => logger.error({ err: error }, 'the configuration cannot be watched or read'),
      });
      await watching;
    },
    async reload() {
      await (await watching)?.reload();
    },
    async close() {
      await Promise.all([cluster?.close(), (await watching)?.close()]);
    },
  });
}
