/** The question "may they?" and its answer: one port for the limiter in this process and the one across gRPC. */
import type { Unit } from '#config';
import type { Rule } from './rule.ts';

export interface Entry {
  readonly key: string;
  readonly value: string;
}

export interface Descriptor {
  readonly entries: readonly Entry[];
  /** Applies in place of whatever the limits file says. */
  readonly limit?: LimitOverride | undefined;
  /** Hits of this descriptor, in place of the request's; 0 only looks. */
  readonly hitsAddend?: number | undefined;
}

/** A limit that the asker brings along; it counts in fixed windows. */
export interface LimitOverride {
  readonly requestsPerUnit: number;
  /** Undefined when the asker did not say, or nothing that is known; such a request is refused. */
  readonly unit: Unit | undefined;
  /** Up to 1000; only in this process, as the protocol has no field for it. @default 1 */
  readonly unitMultiplier?: number | undefined;
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
  /** Absent: 1. */
  readonly unitMultiplier?: number | undefined;
  /** The length of the window that `unit` and `unitMultiplier` stand for, so that whoever writes headers needs no table of units. */
  readonly windowSeconds: number;
  readonly name: string | undefined;
}

/**
 * The verdict on one descriptor, in the request's order. Without a matching limit: OK and no `currentLimit`.
 * Of several limits the most restrictive speaks: one that is over, else the one with the least left.
 */
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
  /** For the client of whoever asks. */
  readonly responseHeaders?: readonly ResponseHeader[] | undefined;
}

export interface ResponseHeader {
  readonly name: string;
  readonly value: string;
}

/**
 * Answers at once when it can, so that a decision in this process costs no turn of the event loop.
 * Throws or rejects with an `InvalidRequest` for an empty domain and for numbers out of range, and with any other error when no answer could be had.
 */
export interface Limiter {
  shouldRateLimit(request: RateLimitRequest): Decision | Promise<Decision>;
  /** The limits that would count this request, for each of its descriptors; nothing is counted. Absent where another process knows them. */
  readonly explain?: (request: RateLimitRequest) => readonly (readonly Rule[])[];
}
