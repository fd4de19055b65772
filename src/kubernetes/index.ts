/** Reads records and addresses from a Kubernetes cluster, and reports to it what became of its objects. */
export {
  type AddressChanges,
  type AddressStore,
  type ChangedService,
  createAddressStore,
  type EndpointSliceObject,
  type PortAddresses,
  type ServiceAddresses,
  type ServiceObject,
} from './addresses.ts';
export type { KubernetesApi } from './api/client.ts';
export { type Cluster, type ClusterOptions, type ClusterSource, openCluster } from './cluster.ts';
export type { ReadFault } from './faults.ts';
export type { ClusterObjects } from './handover.ts';
export { type ClusterContents, readClusterOnce } from './read-once.ts';
export { openReports, type Reports } from './reports/reports.ts';
export type { KubernetesState, ObjectCounts } from './state.ts';
