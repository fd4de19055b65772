/** The gateway: finds the mapping of a request, consults the auth service and the limiter, and forwards the request. */
export { headerPairs } from './auth/check-request.ts';
export type { ConfiguredAuthService } from './auth/stage.ts';
export { createSiteCors } from './cors.ts';
export type { AuthPart } from './explain/auth.ts';
export { type ClientHeaders, concealParams, createConceal, type HeaderPart } from './explain/conceal.ts';
export type { RedirectPart, ShadowPart, TargetPart, UpstreamPart } from './explain/forward.ts';
export type { LimitPart, RateLimitPart } from './explain/limits.ts';
export {
  createGateway,
  createGatewayInTurns,
  createGatewayState,
  type Gateway,
  type GatewayCounts,
  type GatewayOptions,
  type GatewayParts,
  type GatewaySnapshot,
  type GatewayState,
} from './gateway.ts';
export type { GatewayRecords } from './guard-ports.ts';
export { attributesOf, rejectMethod } from './handle.ts';
export {
  createResolve,
  describeTarget,
  type HostAndPort,
  hostAndPort,
  type LiveAddresses,
  type LiveList,
  type RemoteTarget,
  type Resolve,
  type ResolverOptions,
  resolveLimiter,
  type Target,
} from './resolve-service.ts';
export type { InternalRoute, Route, RouteSnapshot } from './route.ts';
export type { ExplainedRequest } from './routed-request.ts';
export type { Stage, StageParts } from './stages.ts';
export {
  durationBoundsMs,
  type Figures,
  type RecentTraffic,
  type RouteTraffic,
  type StatusClass,
} from './traffic/route-traffic.ts';
export { type FailedRequest, type Traffic, trafficBounds, type UnmatchedRequests } from './traffic/traffic.ts';
export type { Handler } from './transport.ts';
export type { VersionLifecycle } from './version-lifecycle.ts';
