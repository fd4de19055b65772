/** The arithmetic of pages: from where one stands to the links that lead on. */
import { parseArgument, splitSearch } from './arguments.ts';

export interface Position {
  readonly offset: number;
  readonly limit: number;
  /** Of all rows that the filters leave. */
  readonly total: number;
  /** The collection's path as the client sees it, percent-encoded. */
  readonly path: string;
  /** As the client sent it; it has been parsed before. */
  readonly search: string;
}

/** Path-absolute links (RFC 3986, section 4.2), each with every argument of the request and its own offset. */
export interface PageLinks {
  readonly self: string;
  readonly first: string;
  /** Absent on the first page. */
  readonly prev?: string;
  /** Absent on the last page and past the end. */
  readonly next?: string;
  readonly last: string;
}

/** Past the end, `prev` leads to the last page; the last page of an empty collection is at offset 0. */
export function pageLinks({ offset, limit, total, path, search }: Position): PageLinks {
  const kept = keptArguments(search);
  const link = (to: number) => `${path}?${kept}offset=${to}&limit=${limit}`;
  const last = total === 0 ? 0 : Math.floor((total - 1) / limit) * limit;
  const previous = offset >= total ? last : Math.max(0, offset - limit);
  return {
    self: link(offset),
    first: link(0),
    ...(offset > 0 ? { prev: link(previous) } : {}),
    ...(offset + limit < total ? { next: link(offset + limit) } : {}),
    last: link(last),
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
    .filter(({ name }) => name !== 'offset' && name !== 'limit')
    .map(({ name, value }) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}&`)
    .join('');
}
