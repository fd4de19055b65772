/** The arguments that name fields: `fields` picks them for a partial item, `sort` orders by them. */
import { quote } from '#http';
import type { Parsed } from './arguments.ts';
import type { Column, View, ViewField } from './view.ts';

/** `id,status` as names in the view's order, each once; `*`, or every name, is undefined: all of them. */
export function parseFields<Row extends object>(view: View<Row>, text: string): Parsed<readonly string[] | undefined> {
  const asked = new Set(text.split(','));
  const unknown = [...asked].filter((name) => name !== '*' && !view.shown.has(name));
  if (unknown.length > 0) return { ok: false, detail: unknownFields(view.shown, unknown) };
  if (asked.has('*') || asked.size === view.shown.size) return { ok: true, value: undefined };
  const names = [...view.shown.keys()].filter((name) => asked.has(name));
  return { ok: true, value: Object.freeze(names) };
}

export interface Order<Row extends object> {
  readonly column: Column<Row>;
  readonly descending: boolean;
  /** The column may contain nulls: before everything else in SQLite, after it in PostgreSQL. @default false */
  readonly isNullable?: boolean;
}

/** `city,-name` as orders of columns, with a tie-breaker. */
export function parseSort<Row extends object>(view: View<Row>, text: string): Parsed<readonly Order<Row>[]> {
  const terms = text.split(',').map((term) => ({
    name: term.replace(/^-/, ''),
    descending: term.startsWith('-'),
  }));
  const unknown = terms.filter(({ name }) => !view.fields.has(name)).map(({ name }) => name);
  if (unknown.length > 0) return { ok: false, detail: unknownFields(view.fields, unknown) };
  const names = terms.map(({ name }) => name);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) return { ok: false, detail: `names ${twice} more than once` };
  const orders = terms.flatMap(({ name, descending }) => {
    const field = view.fields.get(name);
    return field === undefined ? [] : [orderBy(field, descending)];
  });
  return { ok: true, value: withTieBreaker(orders, view.key) };
}

/** The order of a list whose client names none. Throws a TypeError for a column that no field shows. */
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

/** Ends with the unique key, unless it is there already, so that every order is total. */
function withTieBreaker<Row extends object>(orders: readonly Order<Row>[], key: Column<Row>): readonly Order<Row>[] {
  const hasKey = orders.some(({ column }) => column === key);
  const total = hasKey ? orders : [...orders, { column: key, descending: false }];
  return Object.freeze(total.map((order) => Object.freeze(order)));
}

/** Repeats only the first five of many unknown names. */
function unknownFields(known: ReadonlyMap<string, unknown>, unknown: readonly string[]): string {
  const named = unknown.slice(0, 5).map(quote).join(', ');
  const noun = unknown.length === 1 ? 'is no field' : 'are no fields';
  return `${named}${unknown.length > 5 ? ' and others' : ''} ${noun}; known: ${[...known.keys()].join(', ')}`;
}
