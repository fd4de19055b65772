/** The types of a configuration: plain frozen data with everything that a directory or a program configures. */
import type { ConfigurationError } from './errors.ts';
import type { LimitDomain } from './limits/domains.ts';
import type { BlockedMatch } from './records/blocked.ts';
import type { GatewayRecord, RecordLists } from './records/record.ts';
import type { User } from './users.ts';

export interface Configuration extends RecordLists {
  /** Requests that get a 503 until the broken mappings that they belong to are corrected. */
  readonly blocked: readonly BlockedMatch[];
  /**
   * Full names of records that stay in use although no file contains them any more, because a broken record may be one
   * of them under another name.
   */
  readonly possiblyRenamed: readonly string[];
  readonly limits: readonly LimitDomain[];
  readonly users: readonly User[];
  readonly demo: DemoTables;
}

/** The rows of demo.yaml by table. They fill an empty database. The storage module defines the tables and columns. */
export type DemoTables = Readonly<Record<string, readonly Readonly<Record<string, DemoCell>>[]>>;

export type DemoCell = string | number | boolean | null;

/** `configuration` contains everything that is valid. `errors` describes the rest, by file and line. */
export interface LoadedConfiguration {
  readonly configuration: Configuration;
  readonly errors: readonly ConfigurationError[];
  /** Reports settings and records that are valid but may not do what their author expects. */
  readonly notices: readonly ConfigurationError[];
  /** The files of the directory, so that the next reading only parses those that changed. */
  readonly files?: readonly FilePart[];
}

/** The contents of one file. Nothing in it depends on other files. */
export interface FilePart {
  readonly file: string;
  /** The SHA-256 digest of the file's bytes. */
  readonly digest: string;
  readonly records: readonly GatewayRecord[];
  readonly blocked: readonly BlockedMatch[];
  readonly limits: readonly LimitDomain[];
  readonly users: readonly User[];
  readonly demo: DemoTables;
  readonly errors: readonly ConfigurationError[];
  readonly notices: readonly ConfigurationError[];
  /** A notice about how frontdesk reads Ambassador's records, if the file has any. It appears once for all files. */
  readonly differences: readonly ConfigurationError[];
}
