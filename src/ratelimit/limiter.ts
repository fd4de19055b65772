/** The `Limiter` interface, implemented in this process and by the gRPC client, with its requests and their checks. */
import type { Source } from '#foundation';
import { type Algorithm, requestBounds, type Unit, uint32Max } from '#ratelimit/limit';

export interface RateLimitRequest {
  readonly domain: string;
  readonly descriptors: readonly Descriptor[];
  /** How many hits this request counts for. @default 1 */
  readonly hitsAddend?: number;
}

export interface Descriptor {
  readonly entries: readonly Entry[];
  /** Replaces the configured limits. */
  readonly limit?: LimitOverride | undefined;
  /** Overrides the request's `hitsAddend`. 0 counts nothing and only checks whether the limit is exhausted. */
  readonly hitsAddend?: number | undefined;
  /** Gives the hits back instead of counting them, at most those that are counted. Never denies. @default false */
  readonly isNegativeHits?: boolean | undefined;
}

export interface Entry {
  readonly key: string;
  readonly value: string;
}

/** A limit sent with the request. It uses fixed windows. */
export interface LimitOverride {
  readonly requestsPerUnit: number;
  /** Undefined when the request has no unit or an unknown one. Such a request is rejected. */
  readonly unit: Unit | undefined;
  /** At most 1000. @default 1 */
  readonly unitMultiplier?: number | undefined;
}

export interface Decision {
  readonly overallCode: 'OK' | 'OVER_LIMIT';
  /** One for each descriptor, in the request's order. */
  readonly statuses: readonly DescriptorStatus[];
  /** Headers to add to the response to the client. */
  readonly responseHeaders?: readonly ResponseHeader[] | undefined;
}

/**
 * The result for one descriptor: OK without `currentLimit` if no limit matches. If several limits match, it reports the
 * most restrictive: one that is exhausted or, failing that, the one with the least remaining.
 */
export interface DescriptorStatus {
  readonly code: 'OK' | 'OVER_LIMIT';
  readonly currentLimit: CurrentLimit | undefined;
  readonly limitRemaining: number;
  /** Seconds until the window ends. Undefined when the service does not report it. */
  readonly resetSeconds: number | undefined;
}

export interface CurrentLimit {
  readonly requestsPerUnit: number;
  readonly unit: Unit;
  /** @default 1 */
  readonly unitMultiplier?: number | undefined;
  /** The window length, computed from `unit` and `unitMultiplier`. */
  readonly windowSeconds: number;
  readonly name: string | undefined;
}

export interface ResponseHeader {
  readonly name: string;
  readonly value: string;
}

/**
 * Decides whether a request exceeds its limits. It returns the decision synchronously when no I/O is needed.
 * Throws or rejects with an `InvalidRequest` for an empty domain or a number out of range, and with any other error if
 * it cannot decide.
 */
export interface Limiter {
  shouldRateLimit(request: RateLimitRequest): Decision | Promise<Decision>;
  /**
   * Returns the limits that would apply to the request, for each of its descriptors, without counting it. Absent for a
   * remote limiter.
   */
  readonly explain?: (request: RateLimitRequest) => readonly (readonly Rule[])[];
}

/** A limit, compiled for matching and counting. */
export interface Rule {
  readonly currentLimit: CurrentLimit;
  readonly unlimited: boolean;
  readonly replaces: readonly string[];
  readonly shadow: boolean;
  readonly quota: boolean;
  readonly algorithm: Algorithm;
  readonly burst: number;
  readonly domain: string;
  /** As configured, outermost first: `user › path=/v1/*`. It is `*` for a limit sent with a request. */
  readonly descriptor: string;
  /** The descriptor without its values, which may be secret. */
  readonly shownDescriptor: string;
  /** The file and line of its descriptor. Undefined for a limit sent with a request. */
  readonly source: Source | undefined;
  /** Beginning of the counter's key. The request's values for wildcards and for keys without a value follow it. */
  readonly keyPrefix: string;
}

/** Thrown for a request that is malformed or out of range. */
export class InvalidRequest extends Error {
  override readonly name = 'InvalidRequest';
}

/** Thrown when there is no decision because the counters cannot be reached. */
export class CountersUnavailable extends Error {
  override readonly name = 'CountersUnavailable';
}

/**
 * The field is a uint64 on the wire, and Envoy may report byte counts in it. Rejecting large values would leave them
 * uncounted in a gateway that fails open.
 */
export const descriptorHitsMax = 2 ** 64;

/** Each window length has a separate table of counters, so requests must not be able to create arbitrarily many. */
const unitMultiplierMax = 1_000;

/** Throws an `InvalidRequest` for an empty domain, a limit without a unit, or a number out of range. */
export function checkRequest({ domain, descriptors, hitsAddend = 0 }: RateLimitRequest): void {
  if (domain === '') throw new InvalidRequest('domain must not be empty');
  requireNumber('hits_addend', hitsAddend, 0, uint32Max);
  descriptors.forEach(checkDescriptorNumbers);
}

function checkDescriptorNumbers({ limit, hitsAddend: hits = 0 }: Descriptor, index: number): void {
  if (hits !== 0) requireNumber(`descriptors[${index}].hits_addend`, hits, 0, descriptorHitsMax);
  if (limit !== undefined) checkLimit(`descriptors[${index}].limit`, limit);
}

function checkLimit(name: string, { requestsPerUnit, unit, unitMultiplier = 1 }: LimitOverride): void {
  if (unit === undefined) throw new InvalidRequest(`${name} has no unit`);
  requireNumber(`${name}.requests_per_unit`, requestsPerUnit, 0, uint32Max);
  requireNumber(`${name}.unit_multiplier`, unitMultiplier, 1, unitMultiplierMax);
}

function requireNumber(name: string, value: number, min: number, max: number): void {
  if (Number.isInteger(value) && value >= min && value <= max) return;
  throw new InvalidRequest(`${name} must be a whole number from ${min} to ${max}`);
}

/** Throws an `InvalidRequest` that describes the first of `requestBounds` that the request exceeds. */
export function checkBounds({ domain, descriptors }: RateLimitRequest): void {
  if (domain.length > requestBounds.domain) throw tooMuch('domain', domain.length, 'characters', requestBounds.domain);
  if (descriptors.length > requestBounds.descriptors)
    throw tooMuch('descriptors', descriptors.length, 'descriptors', requestBounds.descriptors);
  descriptors.forEach(checkDescriptorBounds);
}

function checkDescriptorBounds({ entries }: Descriptor, index: number): void {
  if (entries.length > requestBounds.entries)
    throw tooMuch(`descriptors[${index}].entries`, entries.length, 'entries', requestBounds.entries);
  const tooLong = entries.findIndex(isTooLong);
  if (tooLong === -1) return;
  const { key = '', value = '' } = entries[tooLong] ?? {};
  const name = `descriptors[${index}].entries[${tooLong}]`;
  if (key.length > requestBounds.key) throw tooMuch(`${name}.key`, key.length, 'characters', requestBounds.key);
  throw tooMuch(`${name}.value`, value.length, 'characters', requestBounds.value);
}

function isTooLong({ key, value }: Entry): boolean {
  return key.length > requestBounds.key || value.length > requestBounds.value;
}

function tooMuch(name: string, length: number, unit: string, max: number): InvalidRequest {
  return new InvalidRequest(`${name} has ${length} ${unit}, more than the maximum of ${max}`);
}
