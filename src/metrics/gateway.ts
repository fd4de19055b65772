/** Requests, durations, refusals and failures for each mapping; circuits and addresses for each service; decisions of auth and limiter. */
import type { GatewayCounts, RouteTraffic, StatusClass } from '#gateway';
import type { ClusterSnapshot } from '#proxy';
import { type Family, type Sample, samplesBy } from './registry.ts';

/** Requests, mapping by mapping. */
export interface RouteParts {
  /** The traffic of each mapping, and that of requests which no mapping matched, under the name `''`. */
  readonly all: () => readonly RouteTraffic[];
  /** The upper bounds of the buckets in `Totals.durations`, in milliseconds, without the last one. */
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
      'Requests that have ended, with `1xx` to `5xx`, or `499` where the client left before it had taken the answer. `mapping` is empty where none met the request.',
      endingsOf,
    ),
    family(
      ['gauge', 'frontdesk_requests_in_flight'],
      'Requests that have not ended.',
      ({ name: mapping, inFlight }) => [{ labels: { mapping }, value: inFlight }],
    ),
    family(
      ['histogram', 'frontdesk_request_duration_seconds'],
      'From the match until the answer has ended; of mappings that had a request.',
      (route) => durationsOf(route, bounds),
    ),
    family(
      ['counter', 'frontdesk_requests_refused_total', 'by'],
      'Requests that the auth service (`auth`) or a rate limit (`limit`) refused.',
      refusalsOf,
    ),
    family(
      ['counter', 'frontdesk_upstream_failures_total', 'class'],
      'Requests that a service across HTTP left without an answer: `unavailable`, `failed`, `timeout`, `overloaded`, as the problems say.',
      failuresOf,
    ),
    family(
      ['counter', 'frontdesk_upstream_retries_total'],
      'Attempts at a service beside the first.',
      ({ name: mapping, upstream }) => [{ labels: { mapping }, value: upstream.retries }],
    ),
  ];
}

function hadRequest({ totals, inFlight }: RouteTraffic): boolean {
  return totals !== undefined || inFlight > 0;
}

const statusClasses: readonly StatusClass[] = [1, 2, 3, 4, 5];
const failureClasses = ['unavailable', 'failed', 'timeout', 'overloaded'] as const;

function endingsOf({ name: mapping, totals }: RouteTraffic): readonly Sample[] {
  return [
    ...statusClasses.map((first) => ({ labels: { mapping, code: `${first}xx` }, value: totals?.byClass[first] ?? 0 })),
    { labels: { mapping, code: '499' }, value: totals?.abandoned ?? 0 },
  ];
}

function refusalsOf({ name: mapping, totals }: RouteTraffic): readonly Sample[] {
  return [
    { labels: { mapping, by: 'auth' }, value: totals?.refusedByAuth ?? 0 },
    { labels: { mapping, by: 'limit' }, value: totals?.refusedByLimit ?? 0 },
  ];
}

function failuresOf({ name: mapping, upstream }: RouteTraffic): readonly Sample[] {
  return failureClasses.map((name) => ({ labels: { mapping, class: name }, value: upstream[name] }));
}

/** All in one step: a request may end between two lines, and the buckets must agree with the count. */
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

/** One service may have several clusters, where records treat it differently: their values are merged. */
export function createClusterFamilies(clusters: () => readonly ClusterSnapshot[]): readonly Family[] {
  const all = () => onlyUsed(clusters(), ({ isUsed }) => isUsed);

  return [
    {
      name: 'frontdesk_upstream_upgrades',
      type: 'gauge',
      labels: ['service'],
      help: 'Connections to the service that have switched protocols, and requests that ask for it.',
      samples: () => mergeByLabels(all(), ({ activeUpgrades }) => [['', activeUpgrades]], serviceAlone, sum),
    },
    {
      name: 'frontdesk_upstream_circuit_open',
      type: 'gauge',
      labels: ['service'],
      help: '1 while a circuit breaker refuses requests to the service.',
      samples: () => mergeByLabels(all(), ({ circuit }) => [['', circuit === 'open' ? 1 : 0]], serviceAlone, Math.max),
    },
    {
      name: 'frontdesk_upstream_circuit_overflows_total',
      type: 'counter',
      labels: ['service'],
      help: 'Requests that a circuit breaker refused.',
      samples: () => mergeByLabels(all(), ({ overflows }) => [['', overflows]], serviceAlone, sum),
    },
    {
      name: 'frontdesk_upstream_address_healthy',
      type: 'gauge',
      labels: ['service', 'address'],
      help: '0 while the address is left out: it fails its health check, or failed too often in a row.',
      samples: () => mergeByLabels(all(), healthOf, (service, address) => ({ service, address }), Math.min),
    },
  ];
}

function serviceAlone(service: string): Sample['labels'] {
  return { service };
}

function sum(one: number, other: number): number {
  return one + other;
}

function healthOf({ addresses }: ClusterSnapshot): readonly (readonly [string, number])[] {
  return addresses.map(({ origin, health }) => [origin, health === 'unhealthy' || health === 'ejected' ? 0 : 1]);
}

/** No two series may have the same labels. */
function mergeByLabels(
  clusters: readonly ClusterSnapshot[],
  valuesOf: (cluster: ClusterSnapshot) => readonly (readonly [address: string, value: number])[],
  labelsOf: (service: string, address: string) => Sample['labels'],
  merge: (one: number, other: number) => number,
): Iterable<Sample> {
  const samples = new Map<string, Sample>();
  for (const cluster of clusters) {
    for (const [address, value] of valuesOf(cluster)) {
      // A service reference has no space.
      const key = `${cluster.service} ${address}`;
      const known = samples.get(key);
      samples.set(key, {
        labels: labelsOf(cluster.service, address),
        value: known === undefined ? value : merge(known.value, value),
      });
    }
  }
  return samples.values();
}

export interface LoginCounts {
  readonly right: number;
  readonly wrong: number;
  readonly throttled: number;
  readonly busy: number;
}

/** What the auth and rate-limit services decided. */
export function createDecisionFamilies(
  { auth, ratelimit }: GatewayCounts,
  logins: LoginCounts | undefined,
): readonly Family[] {
  const family = (name: string, help: string, counts: object): Family => ({
    ...{ name, type: 'counter', labels: ['result'], help },
    samples: () => samplesBy('result', { ...counts }),
  });
  return [
    family(
      'frontdesk_auth_decisions_total',
      'What auth services said of requests: `allowed`, `denied`, or `error` where they gave no answer.',
      auth,
    ),
    family(
      'frontdesk_auth_logins_total',
      'Credentials that were not remembered: `right`, `wrong`, `throttled` after too many failures, or `busy` where too many were being checked.',
      logins ?? {},
    ),
    family(
      'frontdesk_ratelimit_decisions_total',
      'What the rate-limit service said of labelled requests: `ok`, `over`, or `error` where it gave no answer.',
      ratelimit,
    ),
  ];
}

const unusedMax = 1_000;

/** All while they are at most a thousand, so that a first error is an increase from 0; of more, only those that were used. */
function onlyUsed<T>(all: readonly T[], isUsed: (one: T) => boolean): readonly T[] {
  return all.length <= unusedMax ? all : all.filter(isUsed);
}
