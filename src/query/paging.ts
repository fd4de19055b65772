/** Paging: cursors, which are opaque positions in a list, and the links to the other pages of a list. */
import { quoteShort } from '#foundation';
import { type Parsed, parseArgument, splitSearch } from './arguments.ts';
import type { Order } from './fields.ts';
import type { Scalar, View, ViewField } from './view.ts';

/** A page that was requested by `offset`. */
export interface OffsetPage {
  readonly offset: number;
  readonly limit: number;
  /** The number of rows that match the filters. Undefined if they were not counted. */
  readonly total: number | undefined;
  /** Whether there are rows after this page. Required without a total. @default computed from `total` */
  readonly hasMore?: boolean | undefined;
  /** The collection's path as the client sees it, percent-encoded. */
  readonly path: string;
  /** The query string as the client sent it, already validated. */
  readonly search: string;
}

/** Links as absolute paths (RFC 3986 section 4.2), with the arguments of the request except for the position. */
export interface PageLinks {
  readonly self: string;
  readonly first: string;
  /** Absent on the first page, and when paging by `after`. */
  readonly prev?: string;
  /** Absent on the last page and beyond it. */
  readonly next?: string;
  /** Absent without a total, and when paging by `after`. */
  readonly last?: string;
}

/** On a page beyond the end, `prev` links to the last page. The last page of an empty collection is at offset 0. */
export function offsetLinks({ offset, limit, total, hasMore, path, search }: OffsetPage): PageLinks {
  const others = otherArguments(search);
  const link = (to: number) => `${path}?${others}offset=${to}&limit=${limit}`;
  const last = total === undefined ? undefined : lastOffset(total, limit);
  const previous = total !== undefined && offset >= total ? lastOffset(total, limit) : Math.max(0, offset - limit);
  const hasNext = total === undefined ? hasMore === true : offset + limit < total;
  return {
    self: link(offset),
    first: link(0),
    ...(offset > 0 ? { prev: link(previous) } : {}),
    ...(hasNext ? { next: link(offset + limit) } : {}),
    ...(last === undefined ? {} : { last: link(last) }),
  };
}

function lastOffset(total: number, limit: number): number {
  return total === 0 ? 0 : Math.floor((total - 1) / limit) * limit;
}

/** A page that was requested by `after`. */
export interface CursorPage {
  readonly limit: number;
  /** The cursor of the last row on this page. Undefined on the last page. */
  readonly next: string | undefined;
  readonly path: string;
  readonly search: string;
}

export function cursorLinks({ limit, next, path, search }: CursorPage): PageLinks {
  const others = otherArguments(search);
  const link = (cursor: string) => `${path}?${others}after=${encodeURIComponent(cursor)}&limit=${limit}`;
  const current = splitSearch(search)
    .map(parseArgument)
    .find((argument) => argument?.name === 'after');
  return {
    self: link(current?.value ?? cursorStart),
    first: link(cursorStart),
    ...(next === undefined ? {} : { next: link(next) }),
  };
}

/** Many proxies reject a response with more than 8 or 16 KiB of headers as an upstream error. */
const linkHeaderLengthMax = 4096;

/**
 * Formats the value of a `Link` header (RFC 8288 section 3). Undefined if it would be longer than 4 KiB; the body has
 * the links too.
 */
export function formatLinkHeader(links: PageLinks): string | undefined {
  const header = Object.entries(links)
    .map(([relation, target]) => `<${target}>; rel="${relation}"`)
    .join(', ');
  return header.length <= linkHeaderLengthMax ? header : undefined;
}

/**
 * Returns the arguments other than the position, in the client's order. Re-encodes them, because a client may send
 * characters unencoded that would end a link in a header, such as `>`.
 */
function otherArguments(search: string): string {
  return splitSearch(search)
    .map(parseArgument)
    .filter((argument) => argument !== undefined)
    .filter(({ name }) => !['offset', 'limit', 'after'].includes(name))
    .map(({ name, value }) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}&`)
    .join('');
}

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
    detail: `${quoteShort(text)} is not a cursor of this list: use the one in links.next, or start to begin`,
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
