/** The records of a cluster: reads its objects, accepts or refuses each of them, and hands on what is to be used. */
import {
  type AcceptedObjects,
  configurationFrom,
  type LoadedConfiguration,
  loadDirectory,
  nothingRead,
  type ObjectVerdict,
} from '#config';
import { type Logger, silentLogger } from '#foundation';
import type { AddressChanges, Cluster, ClusterContents, ClusterObjects, KubernetesState, Reports } from '#kubernetes';
import type { Setup } from '../options.ts';
import { addressNotices } from '../record-services.ts';
import { createClusterAddresses } from './addresses.ts';
import {
  type Acceptance,
  type ClusterAcceptance,
  createClusterAcceptance,
  trustedNamespaces,
} from './cluster-acceptance.ts';
import { clusterState } from './cluster-state.ts';
import { kubernetesEnvironment } from './environment.ts';
import { filesOf, withCluster } from './with-cluster.ts';

/** Where the records of a process come from, if not from files. */
export interface ClusterRecords {
  /** What the process starts with: before all objects are read, no request is let through. */
  readonly initial: AcceptedObjects;
  /** Starts reading, and calls `onChange` with each new state of the cluster. Resolves at once. */
  readonly start: (onChange: OnChange) => Promise<void>;
  /** Undefined if the process is dormant. */
  readonly state: () => KubernetesState | undefined;
  readonly close: () => Promise<void>;
}

/**
 * `startedAtMs` is the time of `performance.now()` when the acceptance started. Resolves to what was thrown if the objects
 * cannot be used, or else to undefined.
 */
type OnChange = (accepted: AcceptedObjects, startedAtMs: number) => Promise<unknown>;

type ClusterParts = Pick<Setup, 'settings' | 'has' | 'services' | 'clock' | 'dormant' | 'configDirectory'> & {
  readonly logger: Logger;
  /** Kept up to date. */
  readonly clusterAddresses?: Setup['clusterAddresses'];
  readonly clusterContents?: ClusterContents | undefined;
};

/** Reads the cluster now if the process is dormant, because it is to explain one request. Rejects with a user-facing Error. */
export async function openClusterRecords(parts: ClusterParts): Promise<ClusterRecords> {
  const { logger, clock, dormant, clusterAddresses } = parts;
  const source = sourceOf(parts.settings);
  // No Service is read before it is known.
  let trusted: readonly string[] = [];
  const { createAddressStore, openCluster, openReports, readClusterOnce } = await import('#kubernetes');
  const store = createAddressStore(parts.settings.kubernetesAddresses, (namespace) => trusted.includes(namespace));
  const onAddresses = (changes: AddressChanges) => clusterAddresses?.apply(store.apply(changes));
  if (dormant) {
    const { namespace, objects, services, slices } = parts.clusterContents ?? (await readClusterOnce(source));
    trusted = trustedNamespaces(parts.settings, namespace);
    onAddresses({ services: { present: services }, slices: { present: slices } });
    const { accepted: initial } = await createClusterAcceptance(parts, trusted).accept(objects);
    return { initial, start: async () => {}, state: () => undefined, close: async () => {} };
  }
  const { namespaces } = source;
  let cluster: Cluster | undefined;
  let reports: Reports | undefined;
  let deliveries = 0;
  let verdicts: readonly ObjectVerdict[] = [];
  let unserved: Acceptance['unserved'];
  return {
    initial: nothingRead,
    async start(onChange) {
      const opening = openCluster({ ...source, logger, clock, onObjects, onAddresses });
      cluster = await opening;
      trusted = trustedNamespaces(parts.settings, cluster.namespace);
      // The other processes of a split frontdesk would write the same.
      if (parts.has('gateway')) reports = openReports({ api: cluster.api, logger, clock });
      let acceptance: ClusterAcceptance | undefined;

      async function onObjects(objects: ClusterObjects): Promise<void> {
        const startedAtMs = performance.now();
        acceptance ??= createClusterAcceptance(parts, trustedNamespaces(parts.settings, (await opening).namespace));
        const found = await acceptance.accept(objects, (accepted) => onChange(accepted, startedAtMs));
        deliveries += 1;
        ({ unserved } = found);
        ({ verdicts } = found.accepted);
        reports?.report(verdicts);
        reports?.reportStatuses(found.statuses);
      }
    },
    state: () => clusterState({ cluster, reports, namespaces, deliveries, verdicts, unserved }),
    async close() {
      await reports?.close();
      await cluster?.close();
    },
  };
}

/** Reads everything of the cluster that the settings name. Rejects with a user-facing Error. */
export async function readCluster(settings: Setup['settings']): Promise<ClusterContents> {
  const { readClusterOnce } = await import('#kubernetes');
  return readClusterOnce(sourceOf(settings));
}

/**
 * The configuration of the files with the records that the cluster has, with the errors of refused objects, and with
 * notices about services that have no address.
 */
export async function loadFromCluster({
  settings,
  has,
  clusterContents,
}: Pick<ClusterParts, 'settings' | 'has' | 'clusterContents'>): Promise<LoadedConfiguration> {
  const { configDir: configDirectory } = settings;
  const config = filesOf(configDirectory, settings);
  const files = typeof config === 'object' ? configurationFrom(config) : await loadDirectory(configDirectory, settings);
  const clusterAddresses = createClusterAddresses();
  const parts = { settings, has, services: {}, logger: silentLogger, clock: Date.now, dormant: true, configDirectory };
  const { initial } = await openClusterRecords({ ...parts, clusterAddresses, clusterContents });
  const loaded = withCluster(files, initial);
  return {
    ...loaded,
    errors: [...loaded.errors, ...initial.verdicts.flatMap(({ errors }) => errors)],
    notices: [...loaded.notices, ...addressNotices({ ...parts, clusterAddresses }, loaded.configuration)],
  };
}

function sourceOf(settings: Setup['settings']) {
  const { gatewayDomain, kubernetesNamespaces, kubernetesTrustedNamespaces } = settings;
  return {
    environment: kubernetesEnvironment(),
    gatewayDomain,
    namespaces: kubernetesNamespaces.length > 0 ? [...kubernetesNamespaces, ...kubernetesTrustedNamespaces] : [],
    readsEndpoints: settings.kubernetesAddresses === 'endpoints',
    readsGatewayApi: settings.kubernetesGatewayApi,
  };
}
