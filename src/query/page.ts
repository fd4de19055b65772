/** The arithmetic of pages: from where one stands to the links that lead on. */
import { parseArgument, splitSearch } from './arguments.ts';
import { cursorStart } from './cursor.ts';

export interface Position {
  readonly offset: number;
  readonly limit: number;
  /** Of all rows that the filters leave; undefined if nobody counted. */
  readonly total: number | undefined;
  /** Needed where nobody counted: whether there are rows behind this page. @default by `total` */
  readonly hasMore?: boolean | undefined;
  /** The collection's path as the client sees it, percent-encoded. */
  readonly path: string;
  /** As the client sent it; it has been parsed before. */
  readonly search: string;
}

/** Path-absolute links (RFC 3986, section 4.2), each with every argument of the request and its own place in the list. */
export interface PageLinks {
  readonly self: string;
  readonly first: string;
  /** Absent on the first page, and where one walks by `after`. */
  readonly prev?: string;
  /** Absent on the last page and past the end. */
  readonly next?: string;
  /** Absent where nobody counted, and where one walks by `after`. */
  readonly last?: string;
}

/** Past the end, `prev` leads to the last page; the last page of an empty collection is at offset 0. */
export function pageLinks({ offset, limit, total, hasMore, path, search }: Position): PageLinks {
  const kept = keptArguments(search);
  const link = (to: number) => `${path}?${kept}offset=${to}&limit=${limit}`;
  const last = total === undefined ? undefined : lastOffset(total, limit);
  const previous = total !== undefined && offset >= total ? lastOffset(total, limit) : Math.max(0, offset - limit);
  const isFollowed = total === undefined ? hasMore === true : offset + limit < total;
  return {
    self: link(offset),
    first: link(0),
    ...(offset > 0 ? { prev: link(previous) } : {}),
    ...(isFollowed ? { next: link(offset + limit) } : {}),
    ...(last === undefined ? {} : { last: link(last) }),
  };
}

function lastOffset(total: number, limit: number): number {
  return total === 0 ? 0 : Math.floor((total - 1) / limit) * limit;
}

export interface Walk {
  readonly limit: number;
  /** The cursor of the last row of this page; undefined if it is the last page. */
  readonly next: string | undefined;
  readonly path: string;
  readonly search: string;
}

/** The links of a page that was asked for with `after`. */
export function walkLinks({ limit, next, path, search }: Walk): PageLinks {
  const kept = keptArguments(search);
  const link = (cursor: string) => `${path}?${kept}after=${encodeURIComponent(cursor)}&limit=${limit}`;
  const here = splitSearch(search)
    .map(parseArgument)
    .find((argument) => argument?.name === 'after');
  return {
    self: link(here?.value ?? cursorStart),
    first: link(cursorStart),
    ...(next === undefined ? {} : { next: link(next) }),
  };
}

/**
 * The other arguments, in the client's order. They are encoded anew, because what a client may send bare (`"`, `>`)
 * would end a link in a header.
 */
function keptArguments(search: string): string {
  return splitSearch(search)
    .map(parseArgument)
    .filter((argument) => argument !== undefined)
    .filter(({ name }) => !['offset', 'limit', 'after'].includes(name))
    .map(({ name, value }) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}&`)
    .join('');
}
