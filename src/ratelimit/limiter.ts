/** The port of rate limiting: a request, the decision about it, and the `Limiter` that decides, in this process or across gRPC. */
import type { Algorithm, Source, Unit } from '#config';

export interface RateLimitRequest {
  readonly domain: string;
  readonly descriptors: readonly Descriptor[];
  /** How many hits this request counts for. @default 1 */
  readonly hitsAddend?: number;
}

export interface Descriptor {
  readonly entries: readonly Entry[];
  /** Applies in place of the limits that are configured. */
  readonly limit?: LimitOverride | undefined;
  /** Hits of this descriptor, in place of the request's; 0 only looks, and is over when the limit is exhausted. */
  readonly hitsAddend?: number | undefined;
}

export interface Entry {
  readonly key: string;
  readonly value: string;
}

/** A limit that comes with the request; it counts in fixed windows. */
export interface LimitOverride {
  readonly requestsPerUnit: number;
  /** Undefined when the request has no unit, or an unknown one; such a request is refused. */
  readonly unit: Unit | undefined;
  /** Up to 1000; only in this process, as the protocol has no field for it. @default 1 */
  readonly unitMultiplier?: number | undefined;
}

export interface Decision {
  readonly overallCode: 'OK' | 'OVER_LIMIT';
  /** One for each descriptor, in the request's order. */
  readonly statuses: readonly DescriptorStatus[];
  /** For the client whose request is being decided. */
  readonly responseHeaders?: readonly ResponseHeader[] | undefined;
}

/**
 * Without a matching limit: OK and no `currentLimit`.
 * Of several limits it shows the most restrictive: one that is over, otherwise the one with the least remaining.
 */
export interface DescriptorStatus {
  readonly code: 'OK' | 'OVER_LIMIT';
  readonly currentLimit: CurrentLimit | undefined;
  readonly limitRemaining: number;
  /** Seconds until the window ends; undefined when the deciding service does not say. */
  readonly resetSeconds: number | undefined;
}

export interface CurrentLimit {
  readonly requestsPerUnit: number;
  readonly unit: Unit;
  /** Absent: 1. */
  readonly unitMultiplier?: number | undefined;
  /** The length of the window that `unit` and `unitMultiplier` give. */
  readonly windowSeconds: number;
  readonly name: string | undefined;
}

export interface ResponseHeader {
  readonly name: string;
  readonly value: string;
}

/**
 * Answers without a promise when it can, so that a decision in this process costs no turn of the event loop.
 * Throws or rejects with an `InvalidRequest` for an empty domain and for numbers out of range, and with any other error
 * when there is no decision.
 */
export interface Limiter {
  shouldRateLimit(request: RateLimitRequest): Decision | Promise<Decision>;
  /** The limits that would count this request, for each of its descriptors; counts nothing. Absent for a distant limiter. */
  readonly explain?: (request: RateLimitRequest) => readonly (readonly Rule[])[];
}

/** A limit as it is applied. */
export interface Rule {
  readonly currentLimit: CurrentLimit;
  readonly unlimited: boolean;
  readonly replaces: readonly string[];
  readonly shadow: boolean;
  readonly quota: boolean;
  readonly algorithm: Algorithm;
  readonly burst: number;
  readonly domain: string;
  /** As configured, outermost first: `user › path=/v1/*`; `*` for a limit that came with a request. */
  readonly descriptor: string;
  /** The same without its values, which may be secrets. */
  readonly shownDescriptor: string;
  /** Where its descriptor is configured; undefined for a limit that came with a request. */
  readonly source: Source | undefined;
  /** Followed by the values that the configuration leaves open. */
  readonly keyPrefix: string;
}

/** A request that has no decision, because of what is in it. */
export class InvalidRequest extends Error {
  override readonly name = 'InvalidRequest';
}

/** There is no decision, because the hits could not be counted. */
export class CountersUnavailable extends Error {
  override readonly name = 'CountersUnavailable';
}

/** The methods of pino that rate limiting uses. */
export interface Logger {
  info(fields: object, message?: string): void;
  warn(fields: object, message?: string): void;
  error(fields: object, message?: string): void;
  debug?(fields: object, message?: string): void;
  isLevelEnabled?(level: string): boolean;
}
