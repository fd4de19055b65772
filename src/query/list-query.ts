/** What a list is asked for, as plain frozen data: the words are columns of rows, no longer names in a URL. */
import type { Scalar } from './scalar.ts';
import type { Column } from './view.ts';

/** Equality; several filters are all to hold. */
export interface Filter<Row extends object> {
  readonly column: Column<Row>;
  readonly value: Scalar;
}

/** Text to be found, in any case, somewhere in one of the columns. */
export interface TextSearch<Row extends object> {
  readonly text: string;
  readonly columns: readonly Column<Row>[];
}

export interface Order<Row extends object> {
  readonly column: Column<Row>;
  readonly descending: boolean;
  /** The column may hold nulls: before everything else in SQLite, behind it in PostgreSQL. @default false */
  readonly isNullable?: boolean;
}

export interface ListQuery<Row extends object = Readonly<Record<string, Scalar>>, Own = unknown> {
  /** Rows to skip: a safe integer, 0 or more. */
  readonly offset: number;
  /**
   * Give the rows behind this one instead: its values of the columns in `sort`, in that order. Empty: from the start.
   * Absent where the client pages by `offset`.
   */
  readonly after?: readonly Scalar[];
  /** False: nobody wants to know how many rows there are on all pages. @default true */
  readonly isCounted?: boolean;
  /** Rows to give: 1 to 100. */
  readonly limit: number;
  /** Public names in the view's order; undefined: all of them. */
  readonly fields: readonly string[] | undefined;
  readonly filters: readonly Filter<Row>[];
  readonly search: TextSearch<Row> | undefined;
  /** Never empty: a unique column is always in it, so that the order is total and pages neither repeat nor skip. */
  readonly sort: readonly Order<Row>[];
  /** The service's own arguments, if its language has any; see `OwnArguments`. */
  readonly own?: Own;
}
