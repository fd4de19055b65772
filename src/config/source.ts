/** Where a piece of configuration stands. */

/** For messages and for the diagnostics page. Lines count from 1. */
export interface Source {
  readonly file: string;
  readonly line: number;
}
