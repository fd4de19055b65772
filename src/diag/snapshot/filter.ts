/** Parses the query parameters `filter` and `offset`, and filters routes, clusters and services. */
import type { GatewaySnapshot, RouteSnapshot } from '#gateway';
import { type Fault, longQueryFault, problem, queryFault } from '#http';
import type { Cluster, KnownCluster } from './clusters.ts';

export interface RowFilter {
  /** The text that a row must contain, ignoring case. Empty to select all rows. */
  readonly filter: string;
  /** How many of the selected routes are skipped. */
  readonly offset: number;
}

export const noFilter: RowFilter = Object.freeze({ filter: '', offset: 0 });

const names: readonly string[] = ['filter', 'offset'];
const searchLengthMax = 2048;
const filterLengthMax = 200;

/** Parses a query, with or without its question mark. Throws `bad-argument`. */
export function parseFilter(search: string): RowFilter {
  if (search.length > searchLengthMax) throw problem('bad-argument', { errors: [longQueryFault(searchLengthMax)] });
  const given = new URLSearchParams(search);
  const filter = (given.get('filter') ?? '').trim();
  const offset = given.get('offset') || '0';
  const faults = [
    ...[...new Set(given.keys())].flatMap((name) => nameFaults(name, given)),
    ...(filter.length > filterLengthMax ? [queryFault('filter', `has more than ${filterLengthMax} characters`)] : []),
    ...(/^\d{1,9}$/.test(offset) ? [] : [queryFault('offset', 'is not a whole number')]),
  ];
  if (faults.length > 0) throw problem('bad-argument', { errors: faults });
  return { filter, offset: Number(offset) };
}

function nameFaults(name: string, given: URLSearchParams): readonly Fault[] {
  if (!names.includes(name)) return [queryFault(name, `is not an argument here; known: ${names.join(', ')}`)];
  return given.getAll(name).length > 1 ? [queryFault(name, 'is given more than once')] : [];
}

interface Rows {
  readonly routes: readonly RouteSnapshot[];
  readonly clusters: readonly (readonly [Cluster, KnownCluster])[];
  readonly services: GatewaySnapshot['services'];
}

/**
 * Selects routes that contain the text, their clusters and services, and other clusters and services that contain it.
 */
export function selectRows(filter: string, rows: Rows): Rows {
  if (filter === '') return rows;
  const { routes, clusters, services } = rows;
  const text = filter.toLowerCase();
  const contains = (...cells: readonly string[]) => cells.some((cell) => cell.toLowerCase().includes(text));
  const containsOrigin = (cluster: Cluster) => cluster.snapshot().addresses.some(({ origin }) => contains(origin));
  const selected = routes.filter(({ name, prefix, mapping, transport }) =>
    contains(name, prefix, mapping.service, transport.describe()),
  );
  const reached = new Set(selected.map(({ transport }) => transport.cluster));
  const roles = new Set(selected.map(({ name }) => `Mapping ${name}`));
  return {
    routes: selected,
    clusters: clusters.filter(
      ([cluster, { name, mappings }]) =>
        reached.has(cluster) || (mappings.length === 0 && (contains(name) || containsOrigin(cluster))),
    ),
    services: services.filter(({ role, service, target }) => roles.has(role) || contains(role, service, target())),
  };
}
