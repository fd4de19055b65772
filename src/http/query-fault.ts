/** A fault of a query argument, told as a pointer to it. */
import type { Fault } from './problem.ts';

/** `name`: empty for the query as a whole; of a long one the beginning is told. */
export function queryFault(name: string, detail: string): Fault {
  // By whole characters: half of one cannot be encoded.
  const told = Array.from(name).slice(0, charactersMax).join('');
  const pointer =
    told === '' ? '#/query' : `#/query/${encodeURIComponent(told.replaceAll('~', '~0').replaceAll('/', '~1'))}`;
  return { pointer, detail };
}

const charactersMax = 40;
