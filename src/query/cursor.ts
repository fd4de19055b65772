/** Pagination cursors: format the position after a row as an opaque text, and parse it from the argument `after`. */
import { quote } from '#http';
import type { Parsed } from './arguments.ts';
import type { Order } from './fields.ts';
import type { Scalar, View, ViewField } from './view.ts';

/** Requests the first page. It cannot be confused with a cursor, because every cursor begins with `W`. */
export const cursorStart = 'start';

/** Leaves room for the other arguments in a query string. */
const cursorLengthMax = 2048;

/** Undefined if the row's values are too long for a URL. See `Field` for `baseUrl`. */
export function formatCursor<Row extends object>(
  view: View<Row>,
  sort: readonly Order<Row>[],
  row: Row,
  baseUrl: string,
): string | undefined {
  const texts = sort.map(({ column }) => textOf(fieldOf(view, column), row[column] as Scalar, baseUrl));
  const text = Buffer.from(JSON.stringify([nameOf(sort), ...texts])).toString('base64url');
  return text.length <= cursorLengthMax ? text : undefined;
}

/** Returns the values of the columns in `sort`, validated like filters of the same fields. Empty for `start`. */
export function parseCursor<Row extends object>(
  view: View<Row>,
  sort: readonly Order<Row>[],
  text: string,
  baseUrl: string,
): Parsed<readonly Scalar[]> {
  if (text === cursorStart) return { ok: true, value: Object.freeze([]) };
  const [name, ...texts] = decode(text) ?? [];
  if (name === undefined || texts.length !== sort.length) return invalidCursor(text);
  if (name !== nameOf(sort))
    return { ok: false, detail: 'belongs to a list in another order: start again with after=start' };
  const values: Scalar[] = [];
  for (const [index, { column }] of sort.entries()) {
    const parsed = parseValue(fieldOf(view, column), texts[index] ?? null, baseUrl);
    if (!parsed?.ok) return invalidCursor(text);
    values.push(parsed.value);
  }
  return { ok: true, value: Object.freeze(values) };
}

function invalidCursor(text: string): Parsed<never> {
  return {
    ok: false,
    detail: `${quote(text)} is not a cursor of this list: use the one in links.next, or start to begin`,
  };
}

/** Identifies the order. It is part of each cursor, so that a list in another order rejects it. */
function nameOf<Row extends object>(sort: readonly Order<Row>[]): string {
  return sort.map(({ column, descending }) => (descending ? `-${column}` : column)).join();
}

/** Returns the field that shows the column unchanged, or else one that is computed from the column. */
function fieldOf<Row extends object>(view: View<Row>, column: string): ViewField<Row> {
  const fields = view.list.filter((field) => field.column === column);
  const field = fields.find(({ toPublic }) => toPublic === undefined) ?? fields[0];
  if (field === undefined) throw new TypeError(`no field shows the column ${column}`);
  return field;
}

function textOf<Row extends object>({ toPublic }: ViewField<Row>, value: Scalar, baseUrl: string): string | null {
  if (value === null) return null;
  return String(toPublic === undefined ? value : toPublic(value, baseUrl));
}

function parseValue<Row extends object>(
  { isNullable, read }: ViewField<Row>,
  text: string | null,
  baseUrl: string,
): Parsed<Scalar> | undefined {
  if (text === null) return isNullable ? { ok: true, value: null } : undefined;
  return read(text, baseUrl);
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
