/** The edge: routes a request to its service after asking who it is and whether it may. */
export type { AuthQuestion } from './auth-question.ts';
export type { NamedAuthService } from './auth-services.ts';
export type { AuthCounts } from './authenticate.ts';
export type { Entrance, Explain } from './explain.ts';
export type {
  AuthPart,
  CandidatePart,
  DescriptorPart,
  Explanation,
  LimitPart,
  Outcome,
  Question,
  RateLimitPart,
} from './explanation.ts';
export type { TargetPart } from './explanation-target.ts';
export { type Facts, factsOf } from './facts.ts';
export type { Forward } from './forward-local.ts';
export {
  createGateway,
  createGatewayCounts,
  type Gateway,
  type GatewayCounts,
  type GatewayOptions,
  type GatewaySnapshot,
} from './gateway.ts';
export type { LimitCounts } from './limit.ts';
export { createResolve, type Resolve, type ResolverOptions } from './resolve.ts';
export type { InternalRoute, Route } from './route.ts';
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
