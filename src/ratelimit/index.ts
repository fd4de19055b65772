/** How often they may: the limiter, its counters, and both ends of the gRPC protocol. */
export type { Count, Counters, Hit, TakeOptions } from './counters.ts';
export { createLimiter, type LimiterOptions, type LimitObserver } from './create-limiter.ts';
export { type FailurePolicyOptions, withFailurePolicy } from './failure-policy.ts';
export { connectRateLimit, type RateLimitClient, type RateLimitClientOptions } from './grpc-client.ts';
export { type RateLimitServer, type RateLimitServerOptions, serveRateLimit } from './grpc-server.ts';
export type { ErrorLogger } from './grpc-services.ts';
export { createRateLimitHttp, type RateLimitHttpOptions } from './http-service.ts';
export { InvalidRequest } from './invalid-request.ts';
export type {
  CurrentLimit,
  Decision,
  Descriptor,
  DescriptorStatus,
  Entry,
  Limiter,
  LimitOverride,
  RateLimitRequest,
  ResponseHeader,
} from './limiter.ts';
export { createMemoryCounters, type MemoryCounters, type MemoryCountersOptions } from './memory-counters.ts';
export {
  type LimitMetricTable,
  limitMetrics,
  openRateLimitMetrics,
  type RateLimitMetrics,
  type RateLimitSums,
} from './metrics.ts';
export type { ProtocolName } from './protocol.ts';
export { openRedisCounters, type RedisCounters, type RedisCountersOptions } from './redis-counters.ts';
export { createReloadingLimiter, type ReloadingLimiter } from './reloading-limiter.ts';
export type { Rule, RuleMatch } from './rule.ts';
export { createTallies, type TalliedLimit, type Tallies } from './tallies.ts';
export { readUsages, type Usage, type UsageOf } from './usages.ts';
