/** The argument `sort`: public names by weight, `-` for descending, and the tie-breaker that makes every order total. */
import { unknownFields } from './fields.ts';
import type { Order } from './list-query.ts';
import type { Column, View, ViewField } from './view.ts';

export type SortReading<Row extends object> =
  | { readonly ok: true; readonly sort: readonly Order<Row>[] }
  | { readonly ok: false; readonly detail: string };

/** `city,-name` as orders of columns. */
export function parseSort<Row extends object>(view: View<Row>, text: string): SortReading<Row> {
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
  return { ok: true, sort: withTieBreaker(orders, view.key) };
}

/** The order that a service settles for its list. Throws a TypeError for a column that no field shows. */
export function settleSort<Row extends object>(view: View<Row>, orders: readonly Order<Row>[]): readonly Order<Row>[] {
  const settled = withTieBreaker(orders, view.key).map(({ column, descending }) => {
    const field = view.list.find((one) => one.column === column);
    if (field === undefined) throw new TypeError(`a list cannot be ordered by ${column}, which its items do not show`);
    return Object.freeze(orderBy(field, descending));
  });
  return Object.freeze(settled);
}

function orderBy<Row extends object>({ column, isNullable }: ViewField<Row>, descending: boolean): Order<Row> {
  return isNullable ? { column, descending, isNullable } : { column, descending };
}

export function withTieBreaker<Row extends object>(
  orders: readonly Order<Row>[],
  key: Column<Row>,
): readonly Order<Row>[] {
  const settled = orders.some(({ column }) => column === key)
    ? orders
    : [...orders, { column: key, descending: false }];
  return Object.freeze(settled.map((order) => Object.freeze(order)));
}
