/** Parses the arguments that list field names: `fields` selects the fields to show, `sort` the fields to sort by. */
import { quoteShort } from '#foundation';
import type { Parsed } from './arguments.ts';
import type { Column, View, ViewField } from './view.ts';

/** Parses a list such as `id,status`. Returns the names once each, in the view's order; undefined for all fields. */
export function parseFields<Row extends object>(view: View<Row>, text: string): Parsed<readonly string[] | undefined> {
  const requested = new Set(text.split(','));
  const unknown = [...requested].filter((name) => name !== '*' && !view.shown.has(name));
  if (unknown.length > 0) return { ok: false, detail: unknownFields(view.shown, unknown) };
  if (requested.has('*') || requested.size === view.shown.size) return { ok: true, value: undefined };
  const names = [...view.shown.keys()].filter((name) => requested.has(name));
  return { ok: true, value: Object.freeze(names) };
}

export interface Order<Row extends object> {
  readonly column: Column<Row>;
  readonly descending: boolean;
  /** True if the column may contain nulls, which SQLite sorts first and PostgreSQL last. @default false */
  readonly isNullable?: boolean;
}

/** Parses a sort order such as `city,-name` and appends a tie-breaker. */
export function parseSort<Row extends object>(view: View<Row>, text: string): Parsed<readonly Order<Row>[]> {
  const terms = text.split(',').map((term) => ({
    name: term.replace(/^-/, ''),
    descending: term.startsWith('-'),
  }));
  const unknown = terms.filter(({ name }) => !view.fields.has(name)).map(({ name }) => name);
  if (unknown.length > 0) return { ok: false, detail: unknownFields(view.fields, unknown) };
  const names = terms.map(({ name }) => name);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) return { ok: false, detail: `lists ${twice} more than once` };
  const orders = terms.flatMap(({ name, descending }) => {
    const field = view.fields.get(name);
    return field === undefined ? [] : [orderBy(field, descending)];
  });
  return { ok: true, value: withTieBreaker(orders, view.key) };
}

/** Returns the order of a list without `sort`. Throws a TypeError for a column that no field shows. */
export function defaultOrder<Row extends object>(
  view: View<Row>,
  orders: readonly Order<Row>[],
): readonly Order<Row>[] {
  const shown = orders.map(({ column, descending }) => orderBy(fieldShowing(view, column), descending));
  const sort = withTieBreaker(shown, view.key);
  for (const { column } of sort) fieldShowing(view, column);
  return sort;
}

function fieldShowing<Row extends object>(view: View<Row>, column: Column<Row>): ViewField<Row> {
  const field = view.list.find((one) => one.column === column);
  if (field === undefined) throw new TypeError(`a list cannot be ordered by ${column}, which its items do not show`);
  return field;
}

function orderBy<Row extends object>({ column, isNullable }: ViewField<Row>, descending: boolean): Order<Row> {
  return isNullable ? { column, descending, isNullable } : { column, descending };
}

/** Appends the unique key unless it is already in the order, so that every order is total. */
function withTieBreaker<Row extends object>(orders: readonly Order<Row>[], key: Column<Row>): readonly Order<Row>[] {
  const hasKey = orders.some(({ column }) => column === key);
  const total = hasKey ? orders : [...orders, { column: key, descending: false }];
  return Object.freeze(total.map((order) => Object.freeze(order)));
}

/** Lists at most five unknown names. */
function unknownFields(known: ReadonlyMap<string, unknown>, unknown: readonly string[]): string {
  const named = unknown
    .slice(0, 5)
    .map((field) => quoteShort(field))
    .join(', ');
  const rest = unknown.length === 1 ? 'is not a field' : 'are not fields';
  return `${named}${unknown.length > 5 ? ' and others' : ''} ${rest}; known: ${[...known.keys()].join(', ')}`;
}
