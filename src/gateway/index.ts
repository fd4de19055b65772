/** The edge: routes a request to its service after asking who it is and whether it may. */
export type { AuthBody } from './auth/body.ts';
export { upstreamRequest } from './auth-over-http.ts';
export type { AuthQuestion } from './auth-question.ts';
export type { ConfiguredAuthService } from './auth-services.ts';
export { type AuthCounts, createPortQuestion } from './authenticate.ts';
export { type Facts, factsOf } from './facts.ts';
export type { Forward } from './forward-local.ts';
export {
  createGateway,
  createGatewayCounts,
  type Gateway,
  type GatewayCounts,
  type GatewayOptions,
  type GatewayParts,
  type GatewaySnapshot,
} from './gateway.ts';
export { headerPairs } from './header-pairs.ts';
export { createIdentity } from './identity.ts';
export { refuseMethod } from './journey.ts';
export type { LimitCounts } from './limit.ts';
export { createResolve, type Resolve, type ResolverOptions } from './resolve.ts';
export type { InternalRoute, ReadyRoute, Route } from './route.ts';
export { listRoutes } from './route-listing.ts';
export {
  durationBoundsMs,
  type Figures,
  type RecentTraffic,
  type RouteTraffic,
  type StatusClass,
  type Totals,
} from './route-traffic.ts';
export { describeTarget, type Target } from './target.ts';
export { createTraffic, type FailedRequest, type Traffic } from './traffic.ts';
export type { AgingVersion } from './version-life.ts';
