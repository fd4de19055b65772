/** What came of requests, mapping by mapping. */
import type { RouteTraffic, StatusClass } from '#gateway';
import type { Family, Sample } from './exposition.ts';
import { withoutResting } from './resting.ts';

export interface RouteParts {
  /** Those of the configuration, and that of requests which no mapping met, under the name `''`. */
  readonly all: () => readonly RouteTraffic[];
  /** The upper bounds of the buckets in `Totals.durations`, in milliseconds, but for the last one. */
  readonly durationBoundsMs: readonly number[];
}

export function createRouteFamilies({ all, durationBoundsMs }: RouteParts): readonly Family[] {
  const bounds = [...durationBoundsMs.map((bound) => String(bound / 1000)), '+Inf'];

  function* each(samplesOf: (route: RouteTraffic) => readonly Sample[]): Generator<Sample> {
    for (const route of withoutResting(all(), hasBegun)) yield* samplesOf(route);
  }

  return [
    {
      name: 'frontdesk_requests_total',
      type: 'counter',
      labels: ['mapping', 'code'],
      help: 'Requests that have ended, with `1xx` to `5xx`, or `499` where the client left before it had taken the answer. `mapping` is empty where none met the request.',
      samples: () => each(endingsOf),
    },
    {
      name: 'frontdesk_requests_in_flight',
      type: 'gauge',
      labels: ['mapping'],
      help: 'Requests that have not ended.',
      samples: () => each(({ name: mapping, inFlight }) => [{ labels: { mapping }, value: inFlight }]),
    },
    {
      name: 'frontdesk_request_duration_seconds',
      type: 'histogram',
      labels: ['mapping'],
      help: 'From the match until the answer has ended; of mappings that had a request.',
      samples: () => each((route) => durationsOf(route, bounds)),
    },
    {
      name: 'frontdesk_requests_refused_total',
      type: 'counter',
      labels: ['mapping', 'by'],
      help: 'Requests that the auth service (`auth`) or a rate limit (`limit`) refused.',
      samples: () => each(refusalsOf),
    },
    {
      name: 'frontdesk_upstream_failures_total',
      type: 'counter',
      labels: ['mapping', 'class'],
      help: 'Requests that a service across HTTP left without an answer: `unavailable`, `failed`, `timeout`, `overloaded`, as the problems say.',
      samples: () => each(failuresOf),
    },
    {
      name: 'frontdesk_upstream_retries_total',
      type: 'counter',
      labels: ['mapping'],
      help: 'Attempts at a service beside the first.',
      samples: () => each(({ name: mapping, upstream }) => [{ labels: { mapping }, value: upstream.retries }]),
    },
  ];
}

function hasBegun({ totals, inFlight }: RouteTraffic): boolean {
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

/** All at once: a request may end between two lines, and the buckets must agree with the count. */
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
