/** How often they may: the limiter, its counters, and both ends of the gRPC protocol. */
export type {
  CurrentLimit,
  Decision,
  Descriptor,
  DescriptorStatus,
  Entry,
  Limiter,
  RateLimitRequest,
} from './limiter.ts';
