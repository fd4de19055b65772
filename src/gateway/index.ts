/** The edge: routes a request to its service after asking who it is and whether it may. */
export type { AuthCounts } from './authenticate.ts';
export type { Forward } from './forward-local.ts';
export {
  createGateway,
  type Gateway,
  type GatewayOptions,
  type GatewaySnapshot,
} from './gateway.ts';
export type { LimitCounts } from './limit.ts';
export { createResolve, type Resolve, type ResolverOptions } from './resolve.ts';
export type { InternalRoute, Route } from './route.ts';
export { createTable, type Prefixed, type Table } from './table.ts';
export { describeTarget, type Target } from './target.ts';
