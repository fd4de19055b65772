/** The composition root: creates a server from all modules. */
export { createFrontdesk, openFrontdesk } from './frontdesk.ts';
export { loadFromCluster, readCluster } from './kubernetes/cluster-records.ts';
export {
  type CloseOptions,
  type Frontdesk,
  type FrontdeskOptions,
  type Listeners,
  type Listening,
  resolveOptions,
  type Setup,
} from './options.ts';
export { claimPorts } from './ports.ts';
export type { ThreadConnection, ThreadStart } from './threads/thread.ts';
export { certificateNotices } from './tls/certificates.ts';

// Loaded on demand, because an embedded frontdesk has one thread.
export const loadMainThread = () => import('./threads/main-thread.ts');
export const loadThread = () => import('./threads/thread.ts');
