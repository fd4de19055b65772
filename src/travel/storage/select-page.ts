/** Reads a page of a list and its total count, by offset or after a given row. */
import { type RawBuilder, type SelectQueryBuilder, type SqlBool, sql } from 'kysely';
import type { ListQuery, Order, Scalar } from '#query';
import { type FoldedText, foldCase } from './case-folding.ts';
import type { Dialect } from './database.ts';
import { createStatement, type Executor, type Slot } from './statement.ts';

export interface Page<Row> {
  readonly items: readonly Row[];
  /** The number of rows on all pages. Undefined if the query does not want a total. */
  readonly total: number | undefined;
  /** Whether more rows follow. Present only with `after` or without a total. Otherwise it follows from `total`. */
  readonly hasMore?: boolean;
}

/** The database connection, and the dialect of its SQL. */
interface Source {
  readonly dialect: Dialect;
  readonly kysely: Executor;
}

/** Reads a page. `values` is the input for the slots of the reader's query. */
export type PageReader<Values, Row extends object> = (
  values: Values,
  list: ListQuery<NoInfer<Row>>,
) => Promise<Page<Row>>;

/**
 * `query` selects the table, its columns and the visible rows (such as those of one user), with slots for its values.
 * The list query selects among these. It may use computed columns if `query` selects from a subquery. List queries that
 * differ only in values share the same SQL, which is compiled once.
 */
export function createPageReader<DB, TB extends keyof DB, Row extends object, Values = undefined>(
  { dialect, kysely }: Source,
  query: (slot: Slot<Values>) => SelectQueryBuilder<DB, TB, Row>,
): PageReader<Values, Row> {
  type Request = PageRequest<Values, Row>;
  const matching = (slot: Slot<Request>, list: ListQuery<Row>, { search }: Request) =>
    applyFilters(
      query((read) => slot(({ values }) => read(values))),
      list,
      search && withSearchSlots(slot, search),
    );
  const readRows = createStatement<Request, Row>((slot, request) => {
    const list = withSlots(slot, request.list);
    return pageOf(dialect, matching(slot, list, request), list);
  }, pageShape);
  const readCount = createStatement<Request, Count>(
    (slot, request) => countOf(matching(slot, withSlots(slot, request.list), request)),
    countShape,
  );

  return async function readPage(values, list) {
    const { limit, after, wantsTotal = true } = list;
    const search = list.search && { ...foldCase(list.search.text), columns: list.search.columns };
    // Without a total, read one extra row to find out whether there are more.
    const extraRows = after === undefined && wantsTotal ? 0 : 1;
    const { rows: found } = await readRows(kysely, { values, list: { ...list, limit: limit + extraRows }, search });
    const items = found.slice(0, limit);
    const count = async () => {
      const { rows } = await readCount(kysely, { values, list, search });
      // PostgreSQL counts in 64 bits, which pg returns as text.
      return Number(rows[0]?.total);
    };
    const total = wantsTotal ? (totalFrom(items.length, list) ?? (await count())) : undefined;
    return extraRows === 0 ? { items, total } : { items, total, hasMore: found.length > limit };
  };
}

interface PageRequest<Values, Row extends object> {
  readonly values: Values;
  readonly list: ListQuery<Row>;
  readonly search: Search | undefined;
}

/** Matches rows that contain the text in any of the columns. */
interface Search extends FoldedText {
  readonly columns: readonly string[];
}

/** Includes whether each filter's value is null, because nulls need different SQL. */
function countShape<Row extends object>({ list: { filters }, search }: PageRequest<unknown, Row>): string {
  const searched = search && [search.columns, search.replacements.length];
  return JSON.stringify([filters.map(({ column, value }) => [column, value === null]), searched]);
}

function pageShape<Row extends object>(request: PageRequest<unknown, Row>): string {
  const { sort, after } = request.list;
  return JSON.stringify([countShape(request), sort, after?.map((value) => value === null)]);
}

/** Replaces the values of a list query with slots, except for nulls. */
function withSlots<Values, Row extends object>(
  slot: Slot<PageRequest<Values, Row>>,
  list: ListQuery<Row>,
): ListQuery<Row> {
  const { filters, after } = list;
  const slotUnlessNull = (value: Scalar, read: (each: ListQuery<Row>) => Scalar | undefined) =>
    value === null ? value : (slot((request) => read(request.list)) as Scalar);
  return {
    ...list,
    filters: filters.map((filter, index) => ({
      ...filter,
      value: slotUnlessNull(filter.value, (each) => each.filters[index]?.value),
    })),
    limit: slot((request) => request.list.limit),
    offset: slot((request) => request.list.offset),
    ...(after && { after: after.map((value, index) => slotUnlessNull(value, (each) => each.after?.[index])) }),
  };
}

/** Replaces the values of a search with slots. The text becomes a pattern. */
function withSearchSlots<Values, Row extends object>(
  slot: Slot<PageRequest<Values, Row>>,
  { columns, replacements }: Search,
): Search {
  return {
    columns,
    text: slot(({ search }) => patternOf(search?.text ?? '')),
    replacements: replacements.map((_, index) => [
      slot(({ search }) => search?.replacements[index]?.[0] ?? ''),
      slot(({ search }) => search?.replacements[index]?.[1] ?? ''),
    ]),
  };
}

function applyFilters<DB, TB extends keyof DB, Row extends object>(
  query: SelectQueryBuilder<DB, TB, Row>,
  { filters }: ListQuery<NoInfer<Row>>,
  search: Search | undefined,
): SelectQueryBuilder<DB, TB, Row> {
  let filtered = query;
  for (const { column, value } of filters) filtered = filtered.where(equals(column, value));
  return search === undefined ? filtered : filtered.where(contains(search));
}

function pageOf<DB, TB extends keyof DB, Row extends object>(
  dialect: Dialect,
  query: SelectQueryBuilder<DB, TB, Row>,
  { sort, limit, offset, after }: ListQuery<NoInfer<Row>>,
): SelectQueryBuilder<DB, TB, Row> {
  let ordered = query;
  for (const { column, descending } of sort) ordered = ordered.orderBy(sql.ref(column), descending ? 'desc' : 'asc');
  if (after === undefined) return ordered.limit(integer(limit)).offset(integer(offset));
  const following = after.length === 0 ? ordered : ordered.where(rowsAfter(dialect, sort, after));
  return following.limit(integer(limit));
}

/** Wraps the value in a cast: SQLite would re-prepare a statement with a bare `limit ?` for each value. */
function integer(value: number): RawBuilder<number> {
  return sql<number>`cast(${value} as bigint)`;
}

type Condition = RawBuilder<SqlBool>;

/**
 * Searches without regard to case. `lower` handles only ASCII: in SQLite always, and in PostgreSQL with the collation "C"
 * of the columns (see migrations.ts). `replace` does the rest in the same way in both databases, whatever their locale
 * and encoding.
 */
function contains({ columns, text, replacements }: Search): Condition {
  const tests = columns.map((column) => {
    let folded = sql`lower(${sql.ref(column)})`;
    for (const [letter, replacement] of replacements) folded = sql`replace(${folded}, ${letter}, ${replacement})`;
    return sql<SqlBool>`${folded} like ${text} escape '\\'`;
  });
  return sql<SqlBool>`(${sql.join(tests, sql` or `)})`;
}

function patternOf(text: string): string {
  return `%${text.replaceAll(/[\\%_]/g, '\\$&')}%`;
}

/** Derives the total from a page that is not full, which is the last one. Undefined if the rows must be counted. */
function totalFrom(found: number, { offset, limit, after }: ListQuery<never>): number | undefined {
  const isFromStart = after === undefined || after.length === 0;
  return isFromStart && found < limit && (found > 0 || offset === 0) ? offset + found : undefined;
}

interface Count {
  readonly total: number | string;
}

function countOf<DB, TB extends keyof DB, Row>(query: SelectQueryBuilder<DB, TB, Row>) {
  return query.clearSelect().select(sql<Count['total']>`count(*)`.as('total'));
}

type SortColumn = Omit<Order<object>, 'column'> & { readonly column: string };

/** Builds the condition for the rows after a given one, so that an index can skip the rows before it. */
function rowsAfter(dialect: Dialect, sort: readonly SortColumn[], values: readonly Scalar[]): Condition {
  return isUniform(sort) ? tupleAfter(sort, values) : stepsAfter(dialect, sort, values);
}

/** True if all columns sort in the same direction and none is nullable. */
function isUniform(sort: readonly SortColumn[]): boolean {
  return sort.every(({ descending, isNullable }) => descending === sort[0]?.descending && isNullable !== true);
}

/** Compares row values: `(city, id) > (?, ?)`. Both databases look this up in an index. */
function tupleAfter(sort: readonly SortColumn[], values: readonly Scalar[]): Condition {
  const columns = sql.join(sort.map(({ column }) => sql.ref(column)));
  const sign = sort[0]?.descending === true ? sql`<` : sql`>`;
  return sql<SqlBool>`(${columns}) ${sign} (${sql.join(values)})`;
}

/**
 * Compares column by column, because directions differ or nulls may occur: `city > ? or (city = ? and id < ?)`. A bound
 * on the first column lets the database use an index.
 */
function stepsAfter(dialect: Dialect, sort: readonly SortColumn[], values: readonly Scalar[]): Condition {
  const equal = sort.map(({ column }, index) => equals(column, values[index] ?? null));
  const steps = sort.map((order, index) =>
    and([...equal.slice(0, index), isAfter(dialect, order, values[index] ?? null)]),
  );
  const [first] = sort;
  const isBounded = first !== undefined && first.isNullable !== true;
  const bound = isBounded ? [sql<SqlBool>`${sql.ref(first.column)} ${signOf(first)}= ${values[0] ?? null}`] : [];
  return and([...bound, sql<SqlBool>`(${sql.join(steps, sql` or `)})`]);
}

function signOf({ descending }: SortColumn): RawBuilder<unknown> {
  return descending ? sql`<` : sql`>`;
}

function equals(column: string, value: Scalar): Condition {
  return value === null ? sql<SqlBool>`${sql.ref(column)} is null` : sql<SqlBool>`${sql.ref(column)} = ${value}`;
}

/** Nulls sort before all other values in SQLite and after them in PostgreSQL. */
function isAfter(dialect: Dialect, order: SortColumn, value: Scalar): Condition {
  const column = sql.ref(order.column);
  const isNullLast = (dialect === 'sqlite') === order.descending;
  if (value === null) return isNullLast ? sql<SqlBool>`1 = 0` : sql<SqlBool>`${column} is not null`;
  const isBeyond = sql<SqlBool>`${column} ${signOf(order)} ${value}`;
  return order.isNullable === true && isNullLast ? sql<SqlBool>`(${isBeyond} or ${column} is null)` : isBeyond;
}

function and(conditions: readonly Condition[]): Condition {
  return sql<SqlBool>`(${sql.join(conditions, sql` and `)})`;
}
