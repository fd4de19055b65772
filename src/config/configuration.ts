/** What a configuration directory says, as plain frozen data: the shapes that every other module reads. */
import type { AuthService, HeldPrefix, Mapping, RateLimitService, Version } from './gateway-records.ts';
import type { Source } from './source.ts';

export type * from './gateway-records.ts';
export type { Source };

export type Unit = 'second' | 'minute' | 'hour' | 'day' | 'week' | 'month' | 'year';

/** How a limit counts; src/ratelimit/counters.ts says exactly what each means. */
export type Algorithm = 'fixed_window' | 'sliding_window' | 'token_bucket';

/** So many requests per `unitMultiplier` × `unit`. `unlimited` has no unit and no number (they read `'second'` and 0). */
export interface Limit {
  readonly unit: Unit;
  /** 30 with `'second'` is half a minute. @default 1 */
  readonly unitMultiplier: number;
  readonly requestsPerUnit: number;
  readonly unlimited: boolean;
  readonly name: string | undefined;
  /** Names of the limits that this one drops when both meet the same request. */
  readonly replaces: readonly string[];
  /** Counts, and never denies. */
  readonly shadowMode: boolean;
  /** @default 'fixed_window' */
  readonly algorithm: Algorithm;
  /** What a token bucket holds; undefined: `requestsPerUnit`. */
  readonly burst: number | undefined;
}

/** One level of a limits file; `value` undefined matches any value of `key`, and `*` in it any text. */
export interface LimitDescriptor {
  readonly key: string;
  readonly value: string | undefined;
  /** All of them count; none lets pass. */
  readonly limits: readonly Limit[];
  /** One counter for all values that match the wildcard. */
  readonly shareThreshold: boolean;
  /** Metrics tell the values apart. */
  readonly detailedMetric: boolean;
  readonly descriptors: readonly LimitDescriptor[];
  readonly source: Source;
}

export interface LimitDomain {
  readonly domain: string;
  readonly descriptors: readonly LimitDescriptor[];
  readonly source: Source;
}

/** `passwordHash` is a scrypt PHC string. */
export interface User {
  readonly name: string;
  readonly passwordHash: string;
}

/** Something in the configuration that cannot be used, with what to do about it. */
export interface ConfigurationError {
  readonly source: Source;
  /** For example `Mapping hotel`; undefined when the file as a whole is at fault. */
  readonly record: string | undefined;
  readonly message: string;
  /** A second place that the message speaks of, such as the record that has the name already. */
  readonly other?: Source | undefined;
  readonly remedy: string;
}

export interface Configuration {
  readonly mappings: readonly Mapping[];
  readonly authServices: readonly AuthService[];
  readonly rateLimitServices: readonly RateLimitService[];
  /** No two with the same prefix. */
  readonly versions: readonly Version[];
  /** What nobody gets until the mappings that it belongs to are mended. */
  readonly held: readonly HeldPrefix[];
  readonly limits: readonly LimitDomain[];
  readonly users: readonly User[];
  /** Rows by table for an empty database, as demo.yaml has them (checked for shape: tables of rows of scalars). */
  readonly demo: Readonly<Record<string, readonly Readonly<Record<string, string | number | boolean | null>>[]>>;
}
