/** Builds the links to the other pages of a list, for the body and the `Link` header. */
import { parseArgument, splitSearch } from './arguments.ts';
import { cursorStart } from './cursor.ts';

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
