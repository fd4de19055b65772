/** Rate limiting: the limiter, its counters, the gRPC server and client, and the HTTP interface. */
export {
  type ClientLimit,
  type ClientLimits,
  type ClientLimitsOptions,
  createClientLimits,
} from './client-limits.ts';
export { describeDenial, rateLimitHeaders, retryAfterSeconds } from './client-response.ts';
export { createSharedTable, type SharedTable } from './counters/counter-table.ts';
export { type Counters, type Hit, type HitResult, withFailurePolicy } from './counters/counters.ts';
export { createMemoryCounters, type MemoryCounters, releaseLocksOf } from './counters/memory.ts';
export { openRedisCounters, type RedisCounters, type RedisCountersOptions } from './counters/redis.ts';
export type { RedisTls } from './counters/redis-client.ts';
export { adviseOnRedis } from './counters/redis-connection.ts';
export {
  type Allowed,
  createRateLimit,
  type DecideLimit,
  type Denied,
  type LimitedKey,
  type LimitOptions,
  type LimitsOfLimiter,
  type OneLimit,
} from './create-rate-limit.ts';
export { portBounds, portRefusals, type ReportRefusal } from './grpc/bounds.ts';
export { connectRateLimit, type RateLimitClient, type RateLimitClientOptions } from './grpc/client.ts';
export type { ProtocolName } from './grpc/codec.ts';
export { type RateLimitServer, type RateLimitServerOptions, serveRateLimit } from './grpc/server.ts';
export {
  createLimitStats,
  type LimitStat,
  type LimitStats,
  type LimitStatsOptions,
  type UsageOf,
} from './limit-stats.ts';
export {
  CountersUnavailable,
  type CurrentLimit,
  checkBounds,
  type Decision,
  type Descriptor,
  type DescriptorStatus,
  descriptorHitsMax,
  type Entry,
  InvalidRequest,
  type Limiter,
  type RateLimitRequest,
  type ResponseHeader,
  type Rule,
} from './limiter.ts';
export { loadLimits, parseLimits } from './load-limits.ts';
export { createLimiter, type LimiterOptions, type LocalLimiter } from './local-limiter.ts';
export { type RateLimitOptions, rateLimit } from './rate-limit.ts';
