/** What the rate-limit service of this process did, limit by limit. */
import type { LimitMetricTable, LimitStats } from '#ratelimit';
import type { Family } from './exposition.ts';

export interface LimitParts {
  /** What is told of a limit, by the sum that it is told from. */
  readonly table: LimitMetricTable;
  readonly stats: Pick<LimitStats, 'all' | 'failures'>;
}

export function createLimitFamilies({ table, stats }: LimitParts): readonly Family[] {
  const fields = Object.keys(table) as (keyof LimitMetricTable)[];
  return [
    ...fields.map(
      (field): Family => ({
        name: `frontdesk_ratelimit_${table[field][0]}_total`,
        type: 'counter',
        labels: ['domain', 'descriptor', 'limit'],
        help: table[field][1],
        *samples() {
          for (const { labels, sums } of stats.all()) yield { labels: { ...labels }, value: sums[field] };
        },
      }),
    ),
    {
      name: 'frontdesk_ratelimit_call_errors_total',
      type: 'counter',
      labels: [],
      help: 'Decisions for which the counters gave no answer.',
      samples: () => [{ labels: {}, value: stats.failures() }],
    },
  ];
}
