/** A page of a list and its total: by offset, or by the rows after a given one. */
import { type RawBuilder, type SelectQueryBuilder, type SqlBool, sql } from 'kysely';
import type { ListQuery, Order, Scalar } from '#query';
import type { Dialect } from './database.ts';
import { createStatement, type Executor, type Slot } from './statement.ts';

export interface Page<Row> {
  readonly items: readonly Row[];
  /** The number of rows on all pages; undefined if the list is not to be counted. */
  readonly total: number | undefined;
  /** Whether more rows follow, where `total` does not say: with `after`, and without a count. */
  readonly hasMore?: boolean;
}

/** What reads a list: its SQL differs by the dialect. */
interface Source {
  readonly dialect: Dialect;
  readonly kysely: Executor;
}

/** `values` are those of the reader's query. */
export type PageReader<Values, Row extends object> = (
  values: Values,
  list: ListQuery<NoInfer<Row>>,
) => Promise<Page<Row>>;

/**
 * `query` selects the table, its columns and the rows that may be seen at all (such as those of one user), with slots for
 * its values; a list selects among these. Columns that a list names may be computed ones if `query` selects from a
 * subquery. Lists that differ in nothing but values have the same SQL, which is compiled once.
 */
export function createPageReader<DB, TB extends keyof DB, Row extends object, Values = undefined>(
  { dialect, kysely }: Source,
  query: (slot: Slot<Values>) => SelectQueryBuilder<DB, TB, Row>,
): PageReader<Values, Row> {
  type Asked = PageRequest<Values, Row>;
  const matching = (slot: Slot<Asked>, list: ListQuery<Row>) =>
    applyFilters(
      dialect,
      query((read) => slot(({ values }) => read(values))),
      list,
    );
  const readRows = createStatement<Asked, Row>((slot, asked) => {
    const list = withSlots(slot, asked.list);
    return pageOf(dialect, matching(slot, list), list);
  }, pageShape);
  const readCount = createStatement<Asked, Count>(
    (slot, asked) => countOf(matching(slot, withSlots(slot, asked.list))),
    rowsShape,
  );

  return async function readPage(values, list) {
    const { limit, after, wantsTotal = true } = list;
    // Without a total to say so, one row more than the limit shows that there are more.
    const ahead = after === undefined && wantsTotal ? 0 : 1;
    const { rows: found } = await readRows(kysely, { values, list: { ...list, limit: limit + ahead } });
    const items = found.slice(0, limit);
    const count = async () => {
      const { rows } = await readCount(kysely, { values, list });
      // PostgreSQL counts in 64 bits, which pg returns as text.
      return Number(rows[0]?.total);
    };
    const total = wantsTotal ? (totalFrom(items.length, list) ?? (await count())) : undefined;
    return ahead === 0 ? { items, total } : { items, total, hasMore: found.length > limit };
  };
}

interface PageRequest<Values, Row extends object> {
  readonly values: Values;
  readonly list: ListQuery<Row>;
}

/** Null has SQL of its own. */
function rowsShape<Row extends object>({ list: { filters, search } }: PageRequest<unknown, Row>): string {
  return JSON.stringify([filters.map(({ column, value }) => [column, value === null]), search?.columns]);
}

function pageShape<Row extends object>(asked: PageRequest<unknown, Row>): string {
  const { sort, after } = asked.list;
  return JSON.stringify([rowsShape(asked), sort, after?.map((value) => value === null)]);
}

function withSlots<Values, Row extends object>(
  slot: Slot<PageRequest<Values, Row>>,
  list: ListQuery<Row>,
): ListQuery<Row> {
  const { filters, search, after } = list;
  const slotUnlessNull = (value: Scalar, read: (other: ListQuery<Row>) => Scalar | undefined) =>
    value === null ? value : (slot((other) => read(other.list)) as Scalar);
  return {
    ...list,
    filters: filters.map((filter, index) => ({
      ...filter,
      value: slotUnlessNull(filter.value, (other) => other.filters[index]?.value),
    })),
    search: search && { ...search, text: slot((other) => patternOf(other.list.search?.text ?? '')) },
    limit: slot((other) => other.list.limit),
    offset: slot((other) => other.list.offset),
    ...(after && { after: after.map((value, index) => slotUnlessNull(value, (other) => other.after?.[index])) }),
  };
}

function applyFilters<DB, TB extends keyof DB, Row extends object>(
  dialect: Dialect,
  query: SelectQueryBuilder<DB, TB, Row>,
  { filters, search }: ListQuery<NoInfer<Row>>,
): SelectQueryBuilder<DB, TB, Row> {
  let filtered = query;
  for (const { column, value } of filters) filtered = filtered.where(equals(column, value));
  return search === undefined ? filtered : filtered.where(contains(dialect, search.columns, search.text));
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

/** SQLite plans by the value of a bare `limit ?`, and so prepares the statement again for each call. */
function integer(value: number): RawBuilder<number> {
  return sql<number>`cast(${value} as bigint)`;
}

type Condition = RawBuilder<SqlBool>;

/**
 * In PostgreSQL the columns compare byte by byte (see migrations.ts), and `lower` then handles only ASCII; the database's
 * default collation handles all letters.
 */
function contains(dialect: Dialect, columns: readonly string[], pattern: string): Condition {
  const anyCase = dialect === 'postgres' ? sql` collate "default"` : sql``;
  const tests = columns.map(
    (column) => sql<SqlBool>`lower(${sql.ref(column)}${anyCase}) like lower(${pattern}) escape '\\'`,
  );
  return sql<SqlBool>`(${sql.join(tests, sql` or `)})`;
}

function patternOf(text: string): string {
  return `%${text.replaceAll(/[\\%_]/g, '\\$&')}%`;
}

/** A page that is not full is the last one, so that no second query is needed. */
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

/** The condition of the rows after a given one, in a form that an index answers without reading the rows before. */
function rowsAfter(dialect: Dialect, sort: readonly SortColumn[], values: readonly Scalar[]): Condition {
  return isUniform(sort) ? tupleAfter(sort, values) : stepsAfter(dialect, sort, values);
}

/** Both databases compare row values column by column, and find the position in an index. */
function isUniform(sort: readonly SortColumn[]): boolean {
  return sort.every(({ descending, isNullable }) => descending === sort[0]?.descending && isNullable !== true);
}

function tupleAfter(sort: readonly SortColumn[], values: readonly Scalar[]): Condition {
  const columns = sql.join(sort.map(({ column }) => sql.ref(column)));
  const sign = sort[0]?.descending === true ? sql`<` : sql`>`;
  return sql<SqlBool>`(${columns}) ${sign} (${sql.join(values)})`;
}

/** Equal in the first n columns and after the given row in the next one, for each n. The first column bounds the index. */
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

/** Null is the least value of SQLite and the greatest of PostgreSQL. */
function isAfter(dialect: Dialect, order: SortColumn, value: Scalar): Condition {
  const column = sql.ref(order.column);
  const isNullLast = (dialect === 'sqlite') === order.descending;
  if (value === null) return isNullLast ? sql<SqlBool>`1 = 0` : sql<SqlBool>`${column} is not null`;
  const passed = sql<SqlBool>`${column} ${signOf(order)} ${value}`;
  return order.isNullable === true && isNullLast ? sql<SqlBool>`(${passed} or ${column} is null)` : passed;
}

function and(conditions: readonly Condition[]): Condition {
  return sql<SqlBool>`(${sql.join(conditions, sql` and `)})`;
}
