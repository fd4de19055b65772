/** A page of a list and the number of all its rows, the same way for every service. */
import { type SelectQueryBuilder, type SqlBool, sql } from 'kysely';
import type { ListQuery, Scalar } from '#query';
import { comesAfter } from './comes-after.ts';
import type { Database } from './database.ts';
import type { Dialect } from './migrations.ts';

export interface Page<Row> {
  readonly items: readonly Row[];
  /** Of all rows that the query and the filters leave, on whatever page; undefined if the list is not to be counted. */
  readonly total: number | undefined;
  /** Whether there are rows behind these, where it does not follow from `total`: with `after`, and uncounted. */
  readonly hasMore?: boolean;
}

/**
 * `query` says which table, columns and rows there are at all (such as those of one user); `list` asks for some of
 * them. A column that `list` names may also be a computed one, if `query` selects from a subquery.
 */
export async function selectPage<DB, TB extends keyof DB, Row extends object>(
  database: Pick<Database, 'dialect'>,
  query: SelectQueryBuilder<DB, TB, Row>,
  list: ListQuery<NoInfer<Row>>,
): Promise<Page<Row>> {
  const { dialect } = database;
  const { limit, after, isCounted = true } = list;
  const matching = narrow(dialect, query, list);
  // Where no total says whether there is more, one row too many does.
  const ahead = after === undefined && isCounted ? 0 : 1;
  const found = (await pageOf(dialect, matching, { ...list, limit: limit + ahead }).execute()) as Row[];
  const items = found.slice(0, limit);
  const total = isCounted ? (totalFrom(items.length, list) ?? (await count(matching))) : undefined;
  return ahead === 0 ? { items, total } : { items, total, hasMore: found.length > limit };
}

/** The rows that `list` does not filter away. */
export function narrow<DB, TB extends keyof DB, Row extends object>(
  dialect: Dialect,
  query: SelectQueryBuilder<DB, TB, Row>,
  { filters, search }: ListQuery<NoInfer<Row>>,
): SelectQueryBuilder<DB, TB, Row> {
  let narrowed = query;
  for (const { column, value } of filters) narrowed = narrowed.where(equals(column, value));
  return search === undefined ? narrowed : narrowed.where(contains(dialect, search.columns, search.text));
}

/** The rows of the page, in order. */
export function pageOf<DB, TB extends keyof DB, Row extends object>(
  dialect: Dialect,
  query: SelectQueryBuilder<DB, TB, Row>,
  { sort, limit, offset, after }: ListQuery<NoInfer<Row>>,
): SelectQueryBuilder<DB, TB, Row> {
  let ordered = query;
  for (const { column, descending } of sort) ordered = ordered.orderBy(sql.ref(column), descending ? 'desc' : 'asc');
  if (after === undefined) return ordered.limit(limit).offset(offset);
  const behind = after.length === 0 ? ordered : ordered.where(comesAfter(dialect, sort, after));
  return behind.limit(limit);
}

function equals(column: string, value: Scalar) {
  return sql<SqlBool>`${sql.ref(column)} = ${value}`;
}

/**
 * The columns compare byte by byte in PostgreSQL (see migrations.ts), which knows the letters of ASCII alone; the
 * database's own collation knows them all.
 */
function contains(dialect: Dialect, columns: readonly string[], text: string) {
  const pattern = `%${text.replaceAll(/[\\%_]/g, '\\$&')}%`;
  const anyCase = dialect === 'postgres' ? sql` collate "default"` : sql``;
  const tests = columns.map(
    (column) => sql<SqlBool>`lower(${sql.ref(column)}${anyCase}) like lower(${pattern}) escape '\\'`,
  );
  return sql<SqlBool>`(${sql.join(tests, sql` or `)})`;
}

/** A page that is not full ends the list, and says where without asking again. */
function totalFrom(found: number, { offset, limit, after }: ListQuery<never>): number | undefined {
  const isFromStart = after === undefined || after.length === 0;
  return isFromStart && found < limit && (found > 0 || offset === 0) ? offset + found : undefined;
}

async function count<DB, TB extends keyof DB, Row>(query: SelectQueryBuilder<DB, TB, Row>): Promise<number> {
  const counted = query.clearSelect().select(sql<number | string>`count(*)`.as('total'));
  const { total } = (await counted.executeTakeFirstOrThrow()) as { total: number | string };
  // PostgreSQL counts in 64 bits, which pg gives as text.
  return Number(total);
}
