/** Metrics of each rate limit: the same rows for the gateway's metrics and for those of the limiter alone. */
import type { LimitStat, LimitStats } from '#ratelimit';
import type { ConfigurationState } from './process.ts';
import { counter, createMetricsOf, type Family, gauge, type Metrics, samplesBy } from './registry.ts';

/** A hit is within or over; the others say more of some of them. */
const sums = [
  ['total', 'hits', 'Hits that the limit was asked about.'],
  ['within', 'within_limit', 'Hits that the limit had room for.'],
  ['near', 'near_limit', 'Hits that the limit had room for, and that left at least 80 % of it used.'],
  ['over', 'over_limit', 'Hits that the limit had no room for.'],
  ['overFromCache', 'over_limit_from_memory', 'Hits over the limit by local memory, without asking Redis.'],
  ['shadow', 'shadow_mode', 'Hits over a limit in shadow mode, which did not deny them.'],
] as const satisfies readonly (readonly [keyof LimitStat['sums'], string, string])[];

type LimiterFigures = Pick<LimitStats, 'all' | 'failures' | 'refusals'>;

export function createRateLimitFamilies({ all, failures, refusals }: LimiterFigures): readonly Family[] {
  return [
    ...sums.map(
      ([field, name, help]): Family => ({
        name: `frontdesk_ratelimit_${name}_total`,
        type: 'counter',
        labels: ['domain', 'descriptor', 'limit'],
        help,
        samples: () => sumsByLabels(all(), field),
      }),
    ),
    counter('frontdesk_ratelimit_call_errors_total', 'Decisions for which the counters gave no answer.', failures),
    {
      name: 'frontdesk_ratelimit_port_refusals_total',
      type: 'counter',
      labels: ['reason'],
      help: 'What the rate-limit port closed or refused: connections that were `too_many`, `silent`, or had `unfinished` calls; calls that were `invalid`, had an `unreadable` message, asked for a method or a compression that is `unimplemented`, or `exhausted` a bound of messages, reflections or watches.',
      samples: () => samplesBy('reason', refusals()),
    },
  ];
}

/** Limits whose descriptors differ in their values alone share a series: the values may be secrets. */
function sumsByLabels(stats: Iterable<LimitStat>, field: keyof LimitStat['sums']) {
  const samples = new Map<string, { readonly labels: Record<string, string>; value: number }>();
  for (const { shownLabels, sums: found } of stats) {
    const key = JSON.stringify(Object.values(shownLabels));
    const sample = samples.get(key) ?? { labels: { ...shownLabels }, value: 0 };
    sample.value += found[field];
    samples.set(key, sample);
  }
  return samples.values();
}

export interface RateLimitMetricsParts {
  readonly stats: LimiterFigures;
  readonly configuration: Pick<ConfigurationState, 'errors' | 'reloads'>;
}

/** For the limiter's own HTTP port. */
export function createRateLimitMetrics({ stats, configuration }: RateLimitMetricsParts): Metrics {
  const { errors, reloads } = configuration;
  return createMetricsOf([
    ...createRateLimitFamilies(stats),
    counter(
      'frontdesk_ratelimit_config_loads_total',
      'Changed configurations that were read and taken.',
      () => reloads().succeeded,
    ),
    counter(
      'frontdesk_ratelimit_config_load_errors_total',
      'Changed configurations that were broken, and not taken.',
      () => reloads().failed,
    ),
    gauge(
      'frontdesk_ratelimit_config_current',
      '1 when the limits in force are those of the files, 0 when the files are broken.',
      () => (errors().length === 0 ? 1 : 0),
    ),
  ]);
}
