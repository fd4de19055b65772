/** What stands behind a row in an order: a condition that an index over the order answers without counting from the start. */
import { type RawBuilder, type SqlBool, sql } from 'kysely';
import type { Scalar } from '#query';
import type { Dialect } from './migrations.ts';

interface Order {
  readonly column: string;
  readonly descending: boolean;
  readonly isNullable?: boolean;
}

type Condition = RawBuilder<SqlBool>;

/** `values`: those of the row, one for each order. */
export function comesAfter(dialect: Dialect, sort: readonly Order[], values: readonly Scalar[]): Condition {
  return isUniform(sort) ? tupleAfter(sort, values) : stepsAfter(dialect, sort, values);
}

/** Both databases compare row values column by column, and find the place in an index. */
function isUniform(sort: readonly Order[]): boolean {
  return sort.every(({ descending, isNullable }) => descending === sort[0]?.descending && isNullable !== true);
}

function tupleAfter(sort: readonly Order[], values: readonly Scalar[]): Condition {
  const columns = sql.join(sort.map(({ column }) => sql.ref(column)));
  const sign = sort[0]?.descending === true ? sql`<` : sql`>`;
  return sql<SqlBool>`(${columns}) ${sign} (${sql.join(values)})`;
}

/** Equal in the first columns and behind in the next one, for each of them; the first column also bounds the index. */
function stepsAfter(dialect: Dialect, sort: readonly Order[], values: readonly Scalar[]): Condition {
  const equal = sort.map(({ column }, index) => equals(column, values[index] ?? null));
  const steps = sort.map((order, index) =>
    and([...equal.slice(0, index), behind(dialect, order, values[index] ?? null)]),
  );
  const [first] = sort;
  const isBounded = first !== undefined && first.isNullable !== true;
  const bound = isBounded ? [sql<SqlBool>`${sql.ref(first.column)} ${signOf(first)}= ${values[0] ?? null}`] : [];
  return and([...bound, sql<SqlBool>`(${sql.join(steps, sql` or `)})`]);
}

function signOf({ descending }: Order): RawBuilder<unknown> {
  return descending ? sql`<` : sql`>`;
}

function equals(column: string, value: Scalar): Condition {
  return value === null ? sql<SqlBool>`${sql.ref(column)} is null` : sql<SqlBool>`${sql.ref(column)} = ${value}`;
}

/** Null is the least value of SQLite and the greatest of PostgreSQL. */
function behind(dialect: Dialect, order: Order, value: Scalar): Condition {
  const column = sql.ref(order.column);
  const isNullLast = (dialect === 'sqlite') === order.descending;
  if (value === null) return isNullLast ? sql<SqlBool>`1 = 0` : sql<SqlBool>`${column} is not null`;
  const passed = sql<SqlBool>`${column} ${signOf(order)} ${value}`;
  return order.isNullable === true && isNullLast ? sql<SqlBool>`(${passed} or ${column} is null)` : passed;
}

function and(conditions: readonly Condition[]): Condition {
  return sql<SqlBool>`(${sql.join(conditions, sql` and `)})`;
}
