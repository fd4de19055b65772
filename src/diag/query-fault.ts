/** A fault of a query argument, told as a pointer to it. */
import type { Fault } from '#http';

/** `name`: empty for the query as a whole. */
export function queryFault(name: string, detail: string): Fault {
  const pointer =
    name === '' ? '#/query' : `#/query/${encodeURIComponent(name.replaceAll('~', '~0').replaceAll('/', '~1'))}`;
  return { pointer, detail };
}
