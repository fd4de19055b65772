/** How often they may: the limiter, its counters, and both ends of the gRPC protocol. */
export type { Count, Counters, Hit } from './counters.ts';
export { createLimiter, type LimiterOptions } from './create-limiter.ts';
export { connectRateLimit, type RateLimitClient, type RateLimitClientOptions } from './grpc-client.ts';
export { type RateLimitServer, type RateLimitServerOptions, serveRateLimit } from './grpc-server.ts';
export type { ErrorLogger } from './grpc-services.ts';
export { InvalidRequest } from './invalid-request.ts';
export type {
  CurrentLimit,
  Decision,
  Descriptor,
  DescriptorStatus,
  Entry,
  Limiter,
  RateLimitRequest,
} from './limiter.ts';
export { createMemoryCounters, type MemoryCounters, type MemoryCountersOptions } from './memory-counters.ts';
export type { ProtocolName } from './protocol.ts';
