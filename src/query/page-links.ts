/** Links to the other pages of a list, in the body and as a `Link` header. */
import { parseArgument, splitSearch } from './arguments.ts';
import { cursorStart } from './cursor.ts';

/** A page that was asked for by `offset`. */
export interface OffsetPage {
  readonly offset: number;
  readonly limit: number;
  /** Of all rows that the filters leave; undefined if they were not counted. */
  readonly total: number | undefined;
  /** Whether there are rows after this page; required without a total. @default by `total` */
  readonly hasMore?: boolean | undefined;
  /** The collection's path as the client sees it, percent-encoded. */
  readonly path: string;
  /** As the client sent it, and already validated. */
  readonly search: string;
}

/** Path-absolute links (RFC 3986 section 4.2), each with every argument of the request and its own place in the list. */
export interface PageLinks {
  readonly self: string;
  readonly first: string;
  /** Absent on the first page, and when paging by `after`. */
  readonly prev?: string;
  /** Absent on the last page and past the end. */
  readonly next?: string;
  /** Absent without a total, and when paging by `after`. */
  readonly last?: string;
}

/** Past the end, `prev` leads to the last page; the last page of an empty collection is at offset 0. */
export function offsetLinks({ offset, limit, total, hasMore, path, search }: OffsetPage): PageLinks {
  const kept = keptArguments(search);
  const link = (to: number) => `${path}?${kept}offset=${to}&limit=${limit}`;
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

/** A page that was asked for by `after`. */
export interface CursorPage {
  readonly limit: number;
  /** The cursor of the last row of this page; undefined if it is the last page. */
  readonly next: string | undefined;
  readonly path: string;
  readonly search: string;
}

export function cursorLinks({ limit, next, path, search }: CursorPage): PageLinks {
  const kept = keptArguments(search);
  const link = (cursor: string) => `${path}?${kept}after=${encodeURIComponent(cursor)}&limit=${limit}`;
  const own = splitSearch(search)
    .map(parseArgument)
    .find((argument) => argument?.name === 'after');
  return {
    self: link(own?.value ?? cursorStart),
    first: link(cursorStart),
    ...(next === undefined ? {} : { next: link(next) }),
  };
}

/** A proxy in front may refuse a response with more than 8 or 16 KiB of headers, and count it as our failure. */
const linkHeaderLengthMax = 4096;

/** The value of a `Link` header (RFC 8288 section 3). Undefined when it would be longer than 4 KiB: the body has the links too. */
export function formatLinkHeader(links: PageLinks): string | undefined {
  const header = Object.entries(links)
    .map(([relation, target]) => `<${target}>; rel="${relation}"`)
    .join(', ');
  return header.length <= linkHeaderLengthMax ? header : undefined;
}

/**
 * The other arguments, in the client's order. They are encoded again, because characters that a client may send
 * unencoded (`"`, `>`) would end a link in a header.
 */
function keptArguments(search: string): string {
  return splitSearch(search)
    .map(parseArgument)
    .filter((argument) => argument !== undefined)
    .filter(({ name }) => !['offset', 'limit', 'after'].includes(name))
    .map(({ name, value }) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}&`)
    .join('');
}
