/** Which rows of the diagnostics are asked for, read from the query; every fault is told at once. */
import { type Fault, problem, queryFault } from '#http';

export interface Selection {
  /** What a row must hold, in any case; empty: anything. */
  readonly filter: string;
  /** How many of the routes picked are left out. */
  readonly offset: number;
}

export const everything: Selection = Object.freeze({ filter: '', offset: 0 });

const names: readonly string[] = ['filter', 'offset'];
const searchLengthMax = 2048;
const filterLengthMax = 200;

/** `search`: with or without its question mark. Throws `bad-argument`. */
export function readSelection(search: string): Selection {
  if (search.length > searchLengthMax)
    throw problem('bad-argument', { errors: [queryFault('', `is longer than ${searchLengthMax} characters`)] });
  const given = new URLSearchParams(search);
  const filter = (given.get('filter') ?? '').trim();
  const offset = given.get('offset') || '0';
  const faults = [
    ...[...new Set(given.keys())].flatMap((name) => nameFaults(name, given)),
    ...(filter.length > filterLengthMax ? [queryFault('filter', `is longer than ${filterLengthMax} characters`)] : []),
    ...(/^\d{1,9}$/.test(offset) ? [] : [queryFault('offset', 'is no whole number')]),
  ];
  if (faults.length > 0) throw problem('bad-argument', { errors: faults });
  return { filter, offset: Number(offset) };
}

function nameFaults(name: string, given: URLSearchParams): readonly Fault[] {
  if (!names.includes(name)) return [queryFault(name, `is unknown; there are ${names.join(' and ')}`)];
  return given.getAll(name).length > 1 ? [queryFault(name, 'is given more than once')] : [];
}
