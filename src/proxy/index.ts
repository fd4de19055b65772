/** Forwards requests to services over HTTP, with connection pools, retries, health checks and circuit breakers. */

export type { Attempt } from './attempt.ts';
export { createRetryRules } from './attempt-rules.ts';
export { type CallOptions, callUpstream, clientIsGone, type UpstreamRequest, type UpstreamResponse } from './call.ts';
export type { Cluster, ClusterSnapshot, ClusterSpec } from './cluster/cluster.ts';
export type { Timer } from './cluster/health.ts';
export {
  type ClusterRegistry,
  type ClusterRegistryOptions,
  createClusters,
  createLeases,
  type Lease,
  type Leases,
} from './cluster/registry.ts';
export { createUpstreamCounts, isProvoked, type UpstreamCounts } from './failures.ts';
export { createForward } from './forward.ts';
export { callUnary, GrpcFailure, type UnaryResponse } from './grpc/unary.ts';
export { createHeaderRules, type HeaderEdits, withoutNames } from './headers.ts';
export { createIdentity, type Identity } from './identity.ts';
export { wholeBody } from './request-body.ts';
export {
  addForwardedHeaders,
  createRequestHead,
  hostOfOrigin,
  publicAddress,
  referenceBase,
  rejectLoop,
  viaOf,
} from './request-headers.ts';
export { type CopyRequest, createShadow, type ShadowOptions } from './shadow.ts';
