/** Merges the diagnostics of threads that serve the same ports into those of their process. */
import type {
  AuthRow,
  ClusterRow,
  ConnectionsRow,
  Diagnostics,
  LimitRow,
  RateLimitRow,
  RecentRow,
  RouteRow,
  TokenProviderRow,
  TrafficRow,
  UnmatchedRow,
  UpstreamRow,
} from './diagnostics.ts';
import { healthOf, rounded } from './rows.ts';

/** How many rows are shown, as in the diagnostics of each thread. */
export interface RowBounds {
  readonly failures: number;
  readonly unmatched: number;
}

/**
 * Sums what the threads count, takes the worst of their states and the latest of their times. The durations p50 and p99
 * are those of the slowest thread. Everything else comes from the first: the threads have the same configuration, and
 * the same filter must have been applied.
 */
export function mergeDiagnostics(
  [first, ...others]: readonly [Diagnostics, ...Diagnostics[]],
  bounds: RowBounds,
): Diagnostics {
  const all = [first, ...others];
  return {
    ...first,
    uptime_seconds: Math.max(...all.map((one) => one.uptime_seconds)),
    connections: mergeConnections(all.map(({ connections }) => connections)),
    routes: mergeByKey(
      all,
      ({ routes }) => routes,
      ({ name }) => name,
      mergeRoutes,
    ),
    unmatched: mergeTraffic(all.map(({ unmatched }) => unmatched)),
    unmatched_requests: mergeByKey(
      all,
      (one) => one.unmatched_requests,
      ({ method, path }) => `${method} ${path}`,
      mergeUnmatched,
    )
      .toSorted(latestFirst)
      .slice(0, bounds.unmatched),
    clusters: mergeByKey(
      all,
      ({ clusters }) => clusters,
      ({ name }) => name,
      mergeClusters,
    ),
    limits: mergeInOrder(
      all.map(({ limits }) => limits),
      mergeLimits,
    ),
    token_providers: mergeByKey(
      all,
      (one) => one.token_providers,
      ({ name }) => name,
      mergeTokenProviders,
    ),
    failures: all
      .flatMap((one) => one.failures)
      .toSorted(latestFirst)
      .slice(0, bounds.failures),
    auth: mergeDecisions<AuthRow>(all.flatMap(({ auth }) => auth ?? [])),
    ratelimit: mergeDecisions<RateLimitRow>(all.flatMap(({ ratelimit }) => ratelimit ?? [])),
  };
}

/**
 * Merges the rows with the same key, in the order in which the keys first appear. If a thread has several, such as those of
 * one rule of the Gateway API, the first ones of all threads belong together, then the second ones, and so on.
 */
function mergeByKey<Row>(
  all: readonly Diagnostics[],
  rowsOf: (one: Diagnostics) => readonly Row[],
  keyOf: (row: Row) => string,
  merge: (rows: readonly [Row, ...Row[]]) => Row,
): readonly Row[] {
  const byKey = new Map<string, [Row, ...Row[]]>();
  for (const one of all) {
    const counts = new Map<string, number>();
    for (const row of rowsOf(one)) {
      const count = (counts.get(keyOf(row)) ?? 0) + 1;
      counts.set(keyOf(row), count);
      const key = `${count} ${keyOf(row)}`;
      const known = byKey.get(key);
      if (known === undefined) byKey.set(key, [row]);
      else known.push(row);
    }
  }
  return [...byKey.values()].map(merge);
}

/** Merges lists of the same length. During a reload one may be longer, and then its further rows are left out. */
function mergeInOrder<Row>(
  [first = [], ...others]: readonly (readonly Row[])[],
  merge: (rows: readonly [Row, ...Row[]]) => Row,
): readonly Row[] {
  return first.map((row, index) => merge([row, ...others.flatMap((rows) => rows.slice(index, index + 1))]));
}

function sum<Row>(rows: readonly Row[], figure: (row: Row) => number): number {
  return rows.reduce((total, row) => total + figure(row), 0);
}

function latestFirst(a: { readonly at: string }, b: { readonly at: string }): number {
  return a.at < b.at ? 1 : a.at > b.at ? -1 : 0;
}

function latest(times: readonly (string | undefined)[]): string | undefined {
  return times.toSorted().findLast((time) => time !== undefined);
}

function mergeConnections(rows: readonly ConnectionsRow[]): ConnectionsRow {
  return {
    open: sum(rows, (row) => row.open),
    max: sum(rows, (row) => row.max),
    http2: sum(rows, (row) => row.http2),
    http2_requests: sum(rows, (row) => row.http2_requests),
  };
}

function mergeRoutes(rows: readonly [RouteRow, ...RouteRow[]]): RouteRow {
  const traffic = mergeTraffic(rows.map((row) => row.traffic));
  // A route fails whatever its traffic if none of its addresses is usable, of which each thread has its own opinion.
  const isUnusable = rows.some(({ health, traffic: own }) => health === 'failing' && healthOf(own) !== 'failing');
  return { ...rows[0], health: isUnusable ? 'failing' : healthOf(traffic), traffic };
}

function mergeTraffic(rows: readonly TrafficRow[]): TrafficRow {
  return {
    requests: sum(rows, (row) => row.requests),
    in_flight: sum(rows, (row) => row.in_flight),
    errors: sum(rows, (row) => row.errors),
    refused_by_address: sum(rows, (row) => row.refused_by_address),
    refused_by_auth: sum(rows, (row) => row.refused_by_auth),
    refused_by_limit: sum(rows, (row) => row.refused_by_limit),
    abandoned: sum(rows, (row) => row.abandoned),
    upstream: mergeUpstreams(rows.flatMap(({ upstream }) => upstream ?? [])),
    recent: mergeRecent(rows.flatMap(({ recent }) => recent ?? [])),
  };
}

function mergeUpstreams(rows: readonly UpstreamRow[]): UpstreamRow | undefined {
  if (rows.length === 0) return undefined;
  return {
    retries: sum(rows, (row) => row.retries),
    unavailable: sum(rows, (row) => row.unavailable),
    failed: sum(rows, (row) => row.failed),
    timeout: sum(rows, (row) => row.timeout),
    overloaded: sum(rows, (row) => row.overloaded),
  };
}

function mergeRecent(rows: readonly RecentRow[]): RecentRow | undefined {
  const [first] = rows;
  if (first === undefined) return undefined;
  const requests = first.requests.map((_, slot) => sum(rows, (row) => row.requests[slot] ?? 0));
  const errors = first.errors.map((_, slot) => sum(rows, (row) => row.errors[slot] ?? 0));
  return {
    slot_seconds: first.slot_seconds,
    requests,
    errors,
    requests_per_second: rounded(sum(rows, (row) => row.requests_per_second)),
    error_share: rounded(sum(errors, Number) / sum(requests, Number)),
    refused_by_address: sum(rows, (row) => row.refused_by_address),
    refused_by_auth: sum(rows, (row) => row.refused_by_auth),
    refused_by_limit: sum(rows, (row) => row.refused_by_limit),
    p50_ms: highest(rows.map((row) => row.p50_ms)),
    p99_ms: highest(rows.map((row) => row.p99_ms)),
  };
}

function highest(values: readonly (number | undefined)[]): number | undefined {
  const known = values.filter((value) => value !== undefined);
  return known.length === 0 ? undefined : Math.max(...known);
}

function mergeUnmatched(rows: readonly [UnmatchedRow, ...UnmatchedRow[]]): UnmatchedRow {
  return { ...rows[0], at: latest(rows.map(({ at }) => at)) ?? rows[0].at, requests: sum(rows, (row) => row.requests) };
}

/** From best to worst. Threads that have not used a cluster know nothing of its addresses. */
const healths: readonly ClusterRow['addresses'][number]['health'][] = ['unknown', 'healthy', 'ejected', 'unhealthy'];

function mergeClusters(rows: readonly [ClusterRow, ...ClusterRow[]]): ClusterRow {
  return {
    ...rows[0],
    addresses: mergeAddresses(rows),
    used: rows.some(({ used }) => used),
    circuit: rows.some(({ circuit }) => circuit === 'open') ? 'open' : 'closed',
    active_requests: sum(rows, (row) => row.active_requests),
    active_upgrades: sum(rows, (row) => row.active_upgrades),
    overflows: sum(rows, (row) => row.overflows),
  };
}

function mergeAddresses(clusters: readonly ClusterRow[]): ClusterRow['addresses'] {
  const merged = new Map<string, ClusterRow['addresses'][number]>();
  for (const address of clusters.flatMap(({ addresses }) => addresses)) {
    const known = merged.get(address.origin) ?? { ...address, active_requests: 0 };
    merged.set(address.origin, {
      origin: address.origin,
      health: healths.indexOf(address.health) > healths.indexOf(known.health) ? address.health : known.health,
      active_requests: known.active_requests + address.active_requests,
    });
  }
  return [...merged.values()];
}

/** The state of the thread whose keys are the oldest, or that has none. */
function mergeTokenProviders(rows: readonly [TokenProviderRow, ...TokenProviderRow[]]): TokenProviderRow {
  const [oldest = rows[0]] = rows.toSorted((a, b) => ((a.keys_read_at ?? '') < (b.keys_read_at ?? '') ? -1 : 1));
  const rejected = latest(rows.map((row) => row.last_rejection_at));
  return {
    ...oldest,
    failures: sum(rows, (row) => row.failures),
    valid: sum(rows, (row) => row.valid),
    remembered: sum(rows, (row) => row.remembered),
    invalid: sum(rows, (row) => row.invalid),
    unknown_key: sum(rows, (row) => row.unknown_key),
    unchecked: sum(rows, (row) => row.unchecked),
    last_rejection: rows.find((row) => row.last_rejection_at === rejected)?.last_rejection,
    last_rejection_at: rejected,
  };
}

function mergeLimits(rows: readonly [LimitRow, ...LimitRow[]]): LimitRow {
  return {
    ...rows[0],
    hits: sum(rows, (row) => row.hits),
    over: sum(rows, (row) => row.over),
    fullness: highest(rows.map(({ fullness }) => fullness)),
  };
}

/** Sums the counts, whichever they are. Undefined without rows. */
function mergeDecisions<Row extends AuthRow | RateLimitRow>(rows: readonly Row[]): Row | undefined {
  const [first] = rows;
  if (first === undefined) return undefined;
  const sums = Object.entries(first)
    .filter(([, value]) => typeof value === 'number')
    .map(([name]) => [name, sum(rows, (row) => Number(Reflect.get(row, name)))] as const);
  return { ...first, ...Object.fromEntries(sums), last_error_at: latest(rows.map((row) => row.last_error_at)) };
}
