/** Metrics of mappings, of services, and of the decisions of auth and rate-limit services. */
import type { GatewayCounts, RouteTraffic, StatusClass } from '#gateway';
import { type CompressionCounts, grpcStatusName } from '#http';
import type { ClusterSnapshot } from '#proxy';
import { counter, type Family, mergeByLabels, type Sample, samplesBy } from './registry.ts';

/** The sources of the metrics of mappings. */
export interface RouteParts {
  /** Returns the traffic of each mapping and, under the name `''`, of requests that matched no mapping. */
  readonly all: () => readonly RouteTraffic[];
  /** The upper bounds of the buckets in `Totals.durations`, in milliseconds, except for the last bucket. */
  readonly durationBoundsMs: readonly number[];
}

export function createRouteFamilies({ all, durationBoundsMs }: RouteParts): readonly Family[] {
  const bounds = [...durationBoundsMs.map((bound) => String(bound / 1000)), '+Inf'];

  function* each(samplesOf: (route: RouteTraffic) => readonly Sample[]): Generator<Sample> {
    for (const route of onlyUsed(all(), hadRequest)) yield* samplesOf(route);
  }

  const family = (
    [type, name, ...labels]: readonly [Family['type'], string, ...string[]],
    help: string,
    samplesOf: (route: RouteTraffic) => readonly Sample[],
  ): Family => ({ name, type, labels: ['mapping', ...labels], help, samples: () => each(samplesOf) });

  return [
    family(
      ['counter', 'frontdesk_requests_total', 'code'],
      'Completed requests by status class (`1xx` to `5xx`), or `499` if the client disconnected before it had received the response. A response that the service broke off counts as `5xx`, and a gRPC call that is refused by the status of its problem. `mapping` is empty if no mapping matched.',
      completionsOf,
    ),
    family(
      ['counter', 'frontdesk_grpc_calls_total', 'grpc_status'],
      'Completed gRPC calls by status (`OK` to `UNAUTHENTICATED`), ours or that of the service, or `other` for a number that is no status. `CANCELLED` also counts calls whose client left. Mappings without gRPC calls have no series.',
      callsOf,
    ),
    family(['gauge', 'frontdesk_requests_in_flight'], 'Requests in progress.', ({ name: mapping, inFlight }) => [
      { labels: { mapping }, value: inFlight },
    ]),
    family(
      ['histogram', 'frontdesk_request_duration_seconds'],
      'Time from the match of the mapping to the end of the response. Mappings without requests have no series.',
      (route) => durationsOf(route, bounds),
    ),
    family(
      ['counter', 'frontdesk_requests_refused_total', 'by'],
      'Requests that a list of addresses (`address`), the auth service (`auth`) or a rate limit (`limit`) rejected.',
      refusalsOf,
    ),
    family(
      ['counter', 'frontdesk_upstream_failures_total', 'class'],
      'Requests that got no response from a service over HTTP: `unavailable`, `failed`, `timeout` or `overloaded`, as in the problem types.',
      failuresOf,
    ),
    family(
      ['counter', 'frontdesk_upstream_retries_total'],
      'Attempts to call a service after the first one.',
      ({ name: mapping, upstream }) => [{ labels: { mapping }, value: upstream.retries }],
    ),
  ];
}

function hadRequest({ totals, inFlight }: RouteTraffic): boolean {
  return totals !== undefined || inFlight > 0;
}

const statusClasses: readonly StatusClass[] = [1, 2, 3, 4, 5];
const failureClasses = ['unavailable', 'failed', 'timeout', 'overloaded'] as const;

function completionsOf({ name: mapping, totals }: RouteTraffic): readonly Sample[] {
  return [
    ...statusClasses.map((first) => ({ labels: { mapping, code: `${first}xx` }, value: totals?.byClass[first] ?? 0 })),
    { labels: { mapping, code: '499' }, value: totals?.abandoned ?? 0 },
  ];
}

function callsOf({ name: mapping, totals }: RouteTraffic): readonly Sample[] {
  return Array.from(totals?.byGrpcStatus ?? [], (value, code) => {
    return { labels: { mapping, grpc_status: grpcStatusName(code) ?? 'other' }, value };
  });
}

function refusalsOf({ name: mapping, totals }: RouteTraffic): readonly Sample[] {
  return [
    { labels: { mapping, by: 'address' }, value: totals?.refusedByAddress ?? 0 },
    { labels: { mapping, by: 'auth' }, value: totals?.refusedByAuth ?? 0 },
    { labels: { mapping, by: 'limit' }, value: totals?.refusedByLimit ?? 0 },
  ];
}

function failuresOf({ name: mapping, upstream }: RouteTraffic): readonly Sample[] {
  return failureClasses.map((name) => ({ labels: { mapping, class: name }, value: upstream[name] }));
}

/** Reads all values in one step. A request that ends in between could make the buckets disagree with the count. */
function durationsOf({ name: mapping, totals }: RouteTraffic, bounds: readonly string[]): readonly Sample[] {
  if (totals === undefined) return [];
  let count = 0;
  const buckets = bounds.map((le, bucket): Sample => {
    count += totals.durations[bucket] ?? 0;
    return { suffix: '_bucket', labels: { mapping, le }, value: count };
  });
  return [
    ...buckets,
    { suffix: '_sum', labels: { mapping }, value: totals.durationMsSum / 1000 },
    { suffix: '_count', labels: { mapping }, value: count },
  ];
}

/** Merges the values of clusters of the same service. It has several if records configure it differently. */
export function createClusterFamilies(clusters: () => readonly ClusterSnapshot[]): readonly Family[] {
  const all = () => onlyUsed(clusters(), ({ isUsed }) => isUsed);
  const family = (
    [type, name]: readonly [Family['type'], string],
    help: string,
    figureOf: (cluster: ClusterSnapshot) => number,
    merge: 'sum' | 'max' = 'sum',
  ): Family => {
    const sampleOf = (cluster: ClusterSnapshot) => ({ labels: { service: cluster.service }, value: figureOf(cluster) });
    return { name, type, labels: ['service'], help, merge, samples: () => mergeByLabels(all().map(sampleOf), merge) };
  };

  return [
    family(
      ['gauge', 'frontdesk_upstream_upgrades'],
      'Connections to the service that have switched protocols, and pending requests to do so.',
      ({ activeUpgrades }) => activeUpgrades,
    ),
    family(
      ['gauge', 'frontdesk_upstream_circuit_open'],
      '1 while a circuit breaker rejects requests to the service.',
      ({ circuit }) => (circuit === 'open' ? 1 : 0),
      'max',
    ),
    family(
      ['counter', 'frontdesk_upstream_circuit_overflows_total'],
      'Requests that a circuit breaker rejected.',
      ({ overflows }) => overflows,
    ),
    {
      name: 'frontdesk_upstream_address_healthy',
      type: 'gauge',
      labels: ['service', 'address'],
      help: '0 while the address is not used because it fails its health check or has failed too many times in a row.',
      merge: 'min',
      samples: () => mergeByLabels(all().flatMap(healthOf), 'min'),
    },
  ];
}

function healthOf({ service, addresses }: ClusterSnapshot): readonly Sample[] {
  return addresses.map(({ origin: address, health }) => ({
    labels: { service, address },
    value: health === 'unhealthy' || health === 'ejected' ? 0 : 1,
  }));
}

export interface LoginCounts {
  readonly right: number;
  readonly wrong: number;
  readonly throttled: number;
  readonly busy: number;
}

/** Creates the metrics of the decisions of auth and rate-limit services. */
export function createDecisionFamilies(
  { auth, ratelimit }: GatewayCounts,
  logins: LoginCounts | undefined,
): readonly Family[] {
  const family = (name: string, help: string, counts: object): Family => ({
    name,
    type: 'counter',
    labels: ['result'],
    help,
    samples: () => samplesBy('result', { ...counts }),
  });
  return [
    family(
      'frontdesk_auth_decisions_total',
      'Decisions of auth services about requests: `allowed`, `denied`, or `error` if there was no decision.',
      auth,
    ),
    family(
      'frontdesk_auth_logins_total',
      'Passwords and API keys that were not remembered: `right`, `wrong`, `throttled` after too many failures, or `busy` if too many were being checked.',
      logins ?? {},
    ),
    family(
      'frontdesk_ratelimit_decisions_total',
      'Decisions of the rate-limit service about labelled requests: `ok`, `over`, or `error` if there was no decision.',
      ratelimit,
    ),
  ];
}

export function createCompressionFamilies(counts: CompressionCounts): readonly Family[] {
  return [
    {
      name: 'frontdesk_compressed_responses_total',
      type: 'counter',
      labels: ['coding'],
      help: 'Responses that were compressed, by content coding: `zstd`, `br` or `gzip`.',
      samples: () => samplesBy('coding', { ...counts.responses }),
    },
    counter(
      'frontdesk_compression_saved_bytes_total',
      'How many bytes shorter the bodies of these responses became.',
      () => counts.savedBytes,
    ),
  ];
}

const unusedMax = 1_000;

/**
 * Returns all if there are at most a thousand: counters then start at 0, and even the first error is an increase. If
 * there are more, returns only those that have been used.
 */
function onlyUsed<T>(all: readonly T[], isUsed: (one: T) => boolean): readonly T[] {
  return all.length <= unusedMax ? all : all.filter(isUsed);
}
