/** What a limit is: its units, its window, how it is shown, and the bounds of a request that asks about limits. */

export type Unit = 'second' | 'minute' | 'hour' | 'day' | 'week' | 'month' | 'year';

/** The algorithm by which a limit counts. src/ratelimit describes each in detail. */
export type Algorithm = 'fixed_window' | 'sliding_window' | 'token_bucket';

/** Allows `requestsPerUnit` requests per `unitMultiplier` × `unit`, or all requests if `unlimited`. */
export interface Limit {
  readonly unit: Unit;
  /** Multiplies the unit: 30 with `'second'` is half a minute. @default 1 */
  readonly unitMultiplier: number;
  readonly requestsPerUnit: number;
  readonly unlimited: boolean;
  readonly name: string | undefined;
  /** Names of the limits that this one replaces when both apply to the same request. */
  readonly replaces: readonly string[];
  /** Counts requests but never denies them. */
  readonly shadowMode: boolean;
  /** Denies a request only if all limits in quota mode that apply to the request are exhausted. */
  readonly quotaMode: boolean;
  /** @default 'fixed_window' */
  readonly algorithm: Algorithm;
  /** The capacity of a token bucket. @default requestsPerUnit */
  readonly burst: number | undefined;
}

export const unitSeconds: Readonly<Record<Unit, number>> = Object.freeze({
  second: 1,
  minute: 60,
  hour: 3_600,
  day: 86_400,
  week: 7 * 86_400,
  month: 30 * 86_400,
  year: 365 * 86_400,
});

/** Returns the window of a limit in seconds. A month has 30 days and a year 365, as in envoyproxy/ratelimit. */
export function windowSeconds({ unit, unitMultiplier }: Pick<Limit, 'unit' | 'unitMultiplier'>): number {
  return unitSeconds[unit] * unitMultiplier;
}

/** Formats the window of a limit: `minute`, `30 seconds`. */
export function formatWindow({
  unit,
  unitMultiplier = 1,
}: {
  unit: string;
  unitMultiplier?: number | undefined;
}): string {
  return unitMultiplier === 1 ? unit : `${unitMultiplier} ${unit}s`;
}

type Shown = Pick<
  Limit,
  'unit' | 'unitMultiplier' | 'requestsPerUnit' | 'unlimited' | 'name' | 'shadowMode' | 'burst'
> & {
  readonly algorithm: string;
};

/** Formats a limit: `10 per minute`, `5 per 30 seconds, token bucket of 20`. */
export function formatLimit(limit: Shown): string {
  const { requestsPerUnit, unlimited, algorithm, burst = requestsPerUnit, name, shadowMode } = limit;
  if (unlimited) return 'unlimited';
  const how = { fixed_window: '', sliding_window: 'sliding window', token_bucket: `token bucket of ${burst}` };
  return [
    `${requestsPerUnit} per ${formatWindow(limit)}`,
    how[algorithm as keyof typeof how] ?? algorithm,
    name === undefined ? '' : `"${name}"`,
    shadowMode ? 'shadow mode: counts but never rejects' : '',
  ]
    .filter(Boolean)
    .join(', ');
}

/** The units by their number in envoy.type.v3.RateLimitUnit and in both protocol versions. 0 is unknown. */
export const unitsByNumber: readonly (Unit | undefined)[] = Object.freeze([
  undefined,
  'second',
  'minute',
  'hour',
  'day',
  'month',
  'year',
  'week',
]);

/**
 * The key of Envoy's labels whose value is fixed in the configuration. It names a kind of request and is not a secret.
 */
export const genericKey = 'generic_key';

/** Formats a descriptor entry for people who may not read the files: `user`, or `user=…` if it has a value. */
export function redactedEntry(key: string, value: string | undefined): string {
  if (value === undefined) return key;
  return `${key}=${key === genericKey ? value : '…'}`;
}

/**
 * Bounds of a request to a rate-limit service, which the service enforces and labels must observe. Lengths are in
 * UTF-16 code units. A value may be as long as a whole header block (60 KiB in Envoy). With a lower bound, clients could
 * bypass a gateway that fails open by sending a header that is too long for the service.
 */
export const requestBounds = Object.freeze({ domain: 256, descriptors: 64, entries: 32, key: 256, value: 65_536 });

/** The largest number of requests in a limit, and of hits in a request: the maximum of the protocol's uint32. */
export const uint32Max = 4_294_967_295;

/** The maximum size of the whole request. */
export const requestBytesMax = 1_048_576;
