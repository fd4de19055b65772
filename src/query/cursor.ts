/** The argument `after`: the place after one row of a list, as text that a client sends back. */
import { quote } from '#http';
import type { Parsed } from './arguments.ts';
import type { Order } from './fields.ts';
import type { Scalar, View, ViewField } from './view.ts';

/** Asks for the first page. No cursor equals it, since each begins with `W`. */
export const cursorStart = 'start';

/** A search string has room for it, and for all other arguments. */
const cursorLengthMax = 2048;

/** Undefined where the row's values are too long for a URL. `baseUrl` is as in `Field`. */
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

/** The values of the columns in `sort`; each is one that a filter by the same field accepts. */
export function parseCursor<Row extends object>(
  view: View<Row>,
  sort: readonly Order<Row>[],
  text: string,
  baseUrl: string,
): Parsed<readonly Scalar[]> {
  if (text === cursorStart) return { ok: true, value: Object.freeze([]) };
  const [name, ...texts] = decode(text) ?? [];
  if (name === undefined || texts.length !== sort.length) return unreadable(text);
  if (name !== nameOf(sort))
    return { ok: false, detail: 'is of a list in another order: begin again with after=start' };
  const values: Scalar[] = [];
  for (const [index, { column }] of sort.entries()) {
    const parsed = parseValue(fieldOf(view, column), texts[index] ?? null, baseUrl);
    if (!parsed?.ok) return unreadable(text);
    values.push(parsed.value);
  }
  return { ok: true, value: Object.freeze(values) };
}

function unreadable(text: string): Parsed<never> {
  return {
    ok: false,
    detail: `${quote(text)} is no cursor of this list: take it from links.next, or begin with start`,
  };
}

/** Part of each cursor, so that it is refused in a list with another order. */
function nameOf<Row extends object>(sort: readonly Order<Row>[]): string {
  return sort.map(({ column, descending }) => (descending ? `-${column}` : column)).join();
}

/** The field that shows the column as it is, or else one that computes its value from it. */
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
  // PostgreSQL cannot store a NUL in text.
  return text.includes('\0') ? undefined : read(text, baseUrl);
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
