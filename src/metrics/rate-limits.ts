/** Metrics of rate limits, for a gateway and for a stand-alone rate-limit service. */
import type { LimitStat, LimitStats } from '#ratelimit';
import type { ConfigurationState } from './process.ts';
import { counter, createMetricsOf, type Family, gauge, type Metrics, mergeByLabels, samplesBy } from './registry.ts';

/** Each sum with its metric. Every hit is either within or over its limit, or given back; the other sums count subsets. */
const sums = [
  ['total', 'hits', 'Hits on the limit.'],
  ['within', 'within_limit', 'Hits within the limit.'],
  ['near', 'near_limit', 'Hits within the limit after which at least 80 % of it was used.'],
  ['over', 'over_limit', 'Hits over the limit.'],
  [
    'overFromCache',
    'over_limit_from_memory',
    'Hits over the limit according to local memory, without a call to Redis.',
  ],
  ['shadow', 'shadow_mode', 'Hits over the limit that were not denied because it is in shadow mode.'],
  ['givenBack', 'given_back', 'Hits that a proxy has given back. They are not subtracted from the hits.'],
] as const satisfies readonly (readonly [keyof LimitStat['sums'], string, string])[];

type LimiterStats = Pick<LimitStats, 'all' | 'removed' | 'failures' | 'evictions' | 'refusals'>;

export function createRateLimitFamilies(stats: LimiterStats): readonly Family[] {
  const { all, removed, failures, evictions, refusals } = stats;
  return [
    ...sums.map(
      ([field, name, help]): Family => ({
        name: `frontdesk_ratelimit_${name}_total`,
        type: 'counter',
        labels: ['domain', 'descriptor', 'limit'],
        help,
        samples: () => sumsByLabels([...all(), ...removed()], field),
      }),
    ),
    counter(
      'frontdesk_ratelimit_call_errors_total',
      'Decisions for which the counters could not be reached.',
      failures,
    ),
    counter(
      'frontdesk_ratelimit_evicted_counters_total',
      'Counters that were evicted from memory, to make room for others. Their clients get back what they have used.',
      evictions,
    ),
    {
      name: 'frontdesk_ratelimit_port_refusals_total',
      type: 'counter',
      labels: ['reason'],
      help: 'Connections that the rate-limit port closed because there were `too_many`, they were `silent`, or they had `unfinished` calls. Calls that it rejected because they were `invalid`, had an `unreadable` message, used an `unimplemented` method or compression, or `exhausted` a bound on messages, headers, reflection streams or watches.',
      samples: () => samplesBy('reason', refusals()),
    },
  ];
}

/** Merges limits whose descriptors differ only in values into one series, because values may be secret. */
function sumsByLabels(stats: readonly Pick<LimitStat, 'shownLabels' | 'sums'>[], field: keyof LimitStat['sums']) {
  return mergeByLabels(
    stats.map(({ shownLabels, sums: found }) => ({ labels: { ...shownLabels }, value: found[field] })),
  );
}

export interface RateLimitMetricsParts {
  readonly stats: LimiterStats;
  readonly configuration: Pick<ConfigurationState, 'errors' | 'reloads'>;
}

/** Creates the metrics of the HTTP interface of a rate-limit service. */
export function createRateLimitMetrics({ stats, configuration }: RateLimitMetricsParts): Metrics {
  const { errors, reloads } = configuration;
  return createMetricsOf([
    ...createRateLimitFamilies(stats),
    counter(
      'frontdesk_ratelimit_config_loads_total',
      'Reloads of changed files without an error.',
      () => reloads().succeeded,
      'first',
    ),
    counter(
      'frontdesk_ratelimit_config_load_errors_total',
      'Reloads of changed files of which records and limits, or any user, were refused.',
      () => reloads().failed,
      'first',
    ),
    gauge(
      'frontdesk_ratelimit_config_current',
      '0 while records and limits, or any user, are refused because of errors in the files.',
      () => (errors().length === 0 ? 1 : 0),
      'first',
    ),
  ]);
}
