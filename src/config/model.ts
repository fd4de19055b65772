/** `Configuration` and `LoadedConfiguration`: everything that a directory or a program configures, as plain frozen data. */
import type { ConfigurationError } from './errors.ts';
import type { LimitDomain } from './limits/descriptors.ts';
import type { AuthService } from './records/auth-service.ts';
import type { BlockedMatch } from './records/blocked.ts';
import type { Mapping } from './records/mapping.ts';
import type { RateLimitService } from './records/rate-limit-service.ts';
import type { GatewayRecord } from './records/record.ts';
import type { Version } from './records/version.ts';
import type { User } from './users.ts';

export interface Configuration {
  readonly mappings: readonly Mapping[];
  readonly authServices: readonly AuthService[];
  readonly rateLimitServices: readonly RateLimitService[];
  /** No two with the same prefix. */
  readonly versions: readonly Version[];
  /** Answered with 503 until the mappings that they belong to are corrected. */
  readonly blocked: readonly BlockedMatch[];
  /** Full names of records in force that no file has any more: a broken record beside them may be one of them. */
  readonly gone: readonly string[];
  readonly limits: readonly LimitDomain[];
  readonly users: readonly User[];
  readonly demo: DemoTables;
}

/** Rows by table for an empty database, as demo.yaml has them. Storage knows the tables and columns. */
export type DemoTables = Readonly<Record<string, readonly Readonly<Record<string, DemoCell>>[]>>;

export type DemoCell = string | number | boolean | null;

/** `configuration` holds everything that can be used, `errors` says why the rest cannot, by file and line. */
export interface LoadedConfiguration {
  readonly configuration: Configuration;
  readonly errors: readonly ConfigurationError[];
  /** What is valid, but not what a reader of the file might expect. */
  readonly notices: readonly ConfigurationError[];
  /** The files of the directory, so that the next reading parses only those that have changed. */
  readonly files?: readonly FilePart[];
}

/** What one file says. Nothing in it depends on another file. */
export interface FilePart {
  readonly file: string;
  /** SHA-256 of its bytes. */
  readonly digest: string;
  readonly records: readonly GatewayRecord[];
  readonly blocked: readonly BlockedMatch[];
  readonly limits: readonly LimitDomain[];
  readonly users: readonly User[];
  readonly demo: DemoTables;
  readonly errors: readonly ConfigurationError[];
  readonly notices: readonly ConfigurationError[];
  /** How Ambassador's records differ from ours, if the file has any: a notice that is given once for all files. */
  readonly differences: readonly ConfigurationError[];
}
