/** What the rate-limit service did, for Prometheus: per limit, with as many series as the configuration has limits. */
import type { Counter, Registry } from 'prom-client';
import type { LimitStats, LimitSums } from './limit-stats.ts';

export interface RateLimitMetrics {
  /** The files were read: they were good, or the limits before them stay. */
  readonly loaded: (good: boolean) => void;
  readonly contentType: string;
  /** The text that Prometheus reads. */
  readonly text: () => Promise<string>;
}

/** What is counted elsewhere, and read when somebody asks. */
export interface RateLimitSums {
  readonly stats: Pick<LimitStats, 'all' | 'failures'>;
}

/** The library is loaded here and not before: who shows no metrics need not have it. The registry is this desk's own. */
export async function openRateLimitMetrics({ stats }: RateLimitSums): Promise<RateLimitMetrics> {
  const { Counter, Gauge, Registry } = await import('prom-client');
  const registry = new Registry();
  const registers = [registry];
  for (const [field, [name, help]] of Object.entries(limitMetrics))
    new Counter({
      name: `frontdesk_ratelimit_${name}_total`,
      help,
      labelNames: ['domain', 'descriptor', 'limit'],
      registers,
      collect() {
        collect(this, stats, field as keyof LimitSums);
      },
    });
  new Counter({
    name: 'frontdesk_ratelimit_call_errors_total',
    help: 'Decisions for which the counters gave no answer.',
    registers,
    collect() {
      this.reset();
      this.inc(stats.failures());
    },
  });
  const total = (name: string, help: string) =>
    new Counter({ name: `frontdesk_ratelimit_${name}_total`, help, registers });
  const loads = total('config_loads', 'Changed configurations that were read and taken.');
  const loadErrors = total('config_load_errors', 'Changed configurations that were broken, and not taken.');
  const current = new Gauge({
    name: 'frontdesk_ratelimit_config_current',
    help: '1 when the limits in force are those of the files, 0 when the files are broken.',
    registers,
  });
  current.set(1);
  return Object.freeze({
    loaded(good: boolean) {
      current.set(good ? 1 : 0);
      (good ? loads : loadErrors).inc();
    },
    ...exposition(registry),
  });
}

/** A hit is within or over; near and from memory and shadow say more of some of them. */
export const limitMetrics = {
  total: ['hits', 'Hits that the limit was asked about.'],
  within: ['within_limit', 'Hits that the limit had room for.'],
  near: ['near_limit', 'Hits that the limit had room for, and that left at least 80 % of it used.'],
  over: ['over_limit', 'Hits that the limit had no room for.'],
  overFromCache: ['over_limit_from_memory', 'Hits over the limit by local memory, without asking Redis.'],
  shadow: ['shadow_mode', 'Hits over a limit in shadow mode, which did not deny them.'],
} as const satisfies LimitMetricTable;

/** What a sum is called between `frontdesk_ratelimit_` and `_total`, and what it says. */
export type LimitMetricTable = Readonly<Record<keyof LimitSums, readonly [name: string, help: string]>>;

/** The counting itself is a plain addition; the library's labels are looked up only here, when somebody asks. */
function collect(counter: Counter, stats: RateLimitSums['stats'], field: keyof LimitSums): void {
  counter.reset();
  for (const { labels, sums } of stats.all()) counter.inc({ ...labels }, sums[field]);
}

function exposition(registry: Registry): Pick<RateLimitMetrics, 'contentType' | 'text'> {
  return { contentType: registry.contentType, text: () => registry.metrics() };
}
