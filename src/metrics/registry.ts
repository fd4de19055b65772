/** A metric as a row, and rows in a private prom-client registry, which is loaded at the first scrape. */
import { setImmediate as otherWork } from 'node:timers/promises';
import type { Metric, Registry } from 'prom-client';

/** A metric with all of its series: Prometheus calls it a metric family. */
export interface Family {
  readonly name: string;
  readonly type: 'counter' | 'gauge' | 'histogram';
  /** The labels of its series, but for the `le` of a histogram. */
  readonly labels: readonly string[];
  readonly help: string;
  /** Read at each scrape; no two of them have the same labels. */
  readonly samples: () => Iterable<Sample>;
}

export interface Sample {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
  /** Behind the name of a histogram. */
  readonly suffix?: '_bucket' | '_sum' | '_count';
}

/** A metric with one series. */
export function gauge(name: string, help: string, value: () => number): Family {
  return { name, type: 'gauge', labels: [], help, samples: () => [{ labels: {}, value: value() }] };
}

export function counter(name: string, help: string, value: () => number): Family {
  return { ...gauge(name, help, value), type: 'counter' };
}

/** Samples that differ in one label, from their values by the text of the label. */
export function samplesBy(label: string, values: Readonly<Record<string, number>>): readonly Sample[] {
  return Object.entries(values).map(([text, value]) => ({ labels: { [label]: text }, value }));
}

export interface Metrics {
  /** The values as they are now. */
  readonly read: () => Promise<{ readonly contentType: string; readonly text: string }>;
}

/** prom-client counts nothing: it formats what `samples` returns. */
export function createMetricsOf(families: readonly Family[]): Metrics {
  let loading: Promise<Registry> | undefined;
  return Object.freeze({
    async read() {
      loading ??= registryOf(families);
      const registry = await loading;
      let text = '';
      for (const { name } of families) {
        text += `${await registry.getSingleMetricAsString(name)}\n`;
        // A thousand mappings are 29,000 lines: requests must not wait for all of them.
        await otherWork();
      }
      return { contentType: registry.contentType, text };
    },
  });
}

async function registryOf(families: readonly Family[]): Promise<Registry> {
  const prometheus = await import('prom-client');
  const registry = new prometheus.Registry();
  for (const { name, type, help, samples } of families) {
    const get = () => ({ name, type, help, values: Array.from(samples(), (sample) => metricValue(name, sample)) });
    // The types know only prom-client's own metrics; the registry needs no more of a metric than these two.
    registry.registerMetric({ name, get } as unknown as Metric);
  }
  return registry;
}

function metricValue(name: string, { labels, value, suffix }: Sample) {
  return { labels, value, metricName: suffix === undefined ? name : `${name}${suffix}` };
}
