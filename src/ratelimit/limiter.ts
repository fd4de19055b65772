/** The question "may they?" and its answer: one port for the limiter in this process and the one across gRPC. */
import type { Unit } from '#config';

export interface Entry {
  readonly key: string;
  readonly value: string;
}

export interface Descriptor {
  readonly entries: readonly Entry[];
}

export interface RateLimitRequest {
  readonly domain: string;
  readonly descriptors: readonly Descriptor[];
  /** How many hits this request counts for. @default 1 */
  readonly hitsAddend?: number;
}

export interface CurrentLimit {
  readonly requestsPerUnit: number;
  readonly unit: Unit;
  /** The length of the window that `unit` stands for, so that whoever writes headers needs no table of units. */
  readonly windowSeconds: number;
  readonly name: string | undefined;
}

/** The verdict on one descriptor, in the request's order. Without a matching limit: OK and no `currentLimit`. */
export interface DescriptorStatus {
  readonly code: 'OK' | 'OVER_LIMIT';
  readonly currentLimit: CurrentLimit | undefined;
  readonly limitRemaining: number;
  /** Seconds until the window ends; undefined when the answering service does not say. */
  readonly resetSeconds: number | undefined;
}

export interface Decision {
  readonly overallCode: 'OK' | 'OVER_LIMIT';
  readonly statuses: readonly DescriptorStatus[];
}

/**
 * Answers at once when it can, so that a decision in this process costs no turn of the event loop.
 * Throws or rejects with an `InvalidRequest` for an empty domain, and with any other error when no answer could be had.
 */
export interface Limiter {
  shouldRateLimit(request: RateLimitRequest): Decision | Promise<Decision>;
}
