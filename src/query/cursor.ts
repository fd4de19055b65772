/** The argument `after`: the place behind one row of an order, as text that a client hands back. */
import { quote } from './arguments.ts';
import type { Order } from './list-query.ts';
import type { Scalar } from './scalar.ts';
import type { View, ViewField } from './view.ts';

/** Where a walk begins. No cursor reads so, since each begins with `W`. */
export const cursorStart = 'start';

/** A search string holds it, and all other arguments. */
const cursorLengthMax = 2048;

export type CursorReading =
  | { readonly ok: true; readonly values: readonly Scalar[] }
  | { readonly ok: false; readonly detail: string };

/** Undefined where the row's values are too long for a URL. `place` is as in `Field`. */
export function formatCursor<Row extends object>(
  view: View<Row>,
  sort: readonly Order<Row>[],
  row: Row,
  place: string,
): string | undefined {
  const texts = sort.map(({ column }) => textOf(fieldOf(view, column), row[column] as Scalar, place));
  const text = Buffer.from(JSON.stringify([nameOf(sort), ...texts])).toString('base64url');
  return text.length <= cursorLengthMax ? text : undefined;
}

/** The values of the columns that `sort` names; each is one that a filter by the same field could have. */
export function parseCursor<Row extends object>(
  view: View<Row>,
  sort: readonly Order<Row>[],
  text: string,
  place: string,
): CursorReading {
  if (text === cursorStart) return { ok: true, values: Object.freeze([]) };
  const [name, ...texts] = decode(text) ?? [];
  if (name === undefined || texts.length !== sort.length) return broken(text);
  if (name !== nameOf(sort)) return { ok: false, detail: 'is of a list in another order: begin anew with after=start' };
  const values: Scalar[] = [];
  for (const [index, { column }] of sort.entries()) {
    const reading = readValue(fieldOf(view, column), texts[index] ?? null, place);
    if (reading === undefined) return broken(text);
    values.push(reading.value);
  }
  return { ok: true, values: Object.freeze(values) };
}

function broken(text: string): CursorReading {
  return {
    ok: false,
    detail: `${quote(text)} is no cursor of this list: take it from links.next, or begin with start`,
  };
}

/** The order, so that a cursor does not wander into a list with another one. */
function nameOf<Row extends object>(sort: readonly Order<Row>[]): string {
  return sort.map(({ column, descending }) => (descending ? `-${column}` : column)).join();
}

/** The plainest field over the column: one that computes nothing, if there is one. */
function fieldOf<Row extends object>(view: View<Row>, column: string): ViewField<Row> {
  const fields = view.list.filter((field) => field.column === column);
  const field = fields.find(({ toPublic }) => toPublic === undefined) ?? fields[0];
  if (field === undefined) throw new TypeError(`no field shows the column ${column}`);
  return field;
}

function textOf<Row extends object>({ toPublic }: ViewField<Row>, value: Scalar, place: string): string | null {
  if (value === null) return null;
  return String(toPublic === undefined ? value : toPublic(value, place));
}

function readValue<Row extends object>(
  { isNullable, read }: ViewField<Row>,
  text: string | null,
  place: string,
): { readonly value: Scalar } | undefined {
  if (text === null) return isNullable ? { value: null } : undefined;
  // PostgreSQL cannot hold a NUL in text.
  const reading = text.includes('\0') ? undefined : read(text, place);
  return reading?.ok === true ? reading : undefined;
}

function decode(text: string): [string, ...(string | null)[]] | undefined {
  if (text.length > cursorLengthMax || !/^[\w-]+$/.test(text)) return undefined;
  try {
    const parts: unknown = JSON.parse(Buffer.from(text, 'base64url').toString());
    if (!Array.isArray(parts) || typeof parts[0] !== 'string') return undefined;
    return parts.every((part) => part === null || typeof part === 'string')
      ? (parts as [string, ...(string | null)[]])
      : undefined;
  } catch {
    return undefined;
  }
}
