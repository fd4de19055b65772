/** Takes a page of a collection from an array: filters, searches, sorts and pages its rows. */
import type { ListQuery } from '#query';
import type { Rows } from './read.ts';

/**
 * Returns the page that the query asks for. Looks at every row for each request, which suits thousands of rows; for more,
 * let a database apply the query. Sorts text by its UTF-16 code units, and null or a missing value before all others.
 */
export function pageOf<Row extends object>(rows: readonly Row[], query: ListQuery<Row>): Rows<Row> {
  const { offset, limit, after, sort } = query;
  const matching = rows
    .filter(matcher(query))
    .sort((one, other) => compareBy(sort, valuesOf(sort, one), valuesOf(sort, other)));
  const following =
    after === undefined || after.length === 0
      ? matching
      : matching.filter((row) => compareBy(sort, valuesOf(sort, row), after) > 0);
  const start = after === undefined ? offset : 0;
  return {
    items: following.slice(start, start + limit),
    total: matching.length,
    hasMore: start + limit < following.length,
  };
}

type Sort<Row extends object> = ListQuery<Row>['sort'];

function matcher<Row extends object>({ filters, search }: ListQuery<Row>): (row: Row) => boolean {
  const text = search?.text.toLowerCase() ?? '';
  const contains = (value: unknown) => typeof value === 'string' && value.toLowerCase().includes(text);
  return (row) =>
    filters.every(({ column, value }) => compare(row[column], value) === 0) &&
    (search === undefined || search.columns.some((column) => contains(row[column])));
}

function valuesOf<Row extends object>(sort: Sort<Row>, row: Row): readonly unknown[] {
  return sort.map(({ column }) => row[column]);
}

/** Compares two lists of values, one for each column of the order. */
function compareBy<Row extends object>(sort: Sort<Row>, ones: readonly unknown[], others: readonly unknown[]): number {
  for (const [index, { descending }] of sort.entries()) {
    const result = compare(ones[index], others[index]);
    if (result !== 0) return descending ? -result : result;
  }
  return 0;
}

/** Compares two values of a column, which are strings, numbers, booleans or dates. */
function compare(one: unknown, other: unknown): number {
  if (one == null || other == null) return Number(one != null) - Number(other != null);
  if ((one as string) < (other as string)) return -1;
  return (one as string) > (other as string) ? 1 : 0;
}
