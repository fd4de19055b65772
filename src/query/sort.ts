/** The argument `sort`: public names by weight, `-` for descending, and the tie-breaker that makes every order total. */
import { unknownFields } from './fields.ts';
import type { Order } from './list-query.ts';
import type { Column, View } from './view.ts';

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
  if (unknown.length > 0) return { ok: false, detail: unknownFields(view, unknown) };
  const names = terms.map(({ name }) => name);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) return { ok: false, detail: `names ${twice} more than once` };
  const orders = terms.flatMap(({ name, descending }) => {
    const field = view.fields.get(name);
    return field === undefined ? [] : [{ column: field.column, descending }];
  });
  return { ok: true, sort: withTieBreaker(orders, view.key) };
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
