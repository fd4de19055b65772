/** Metric families, and their rendering by a private prom-client registry that is loaded at the first scrape. */
import { setImmediate } from 'node:timers/promises';
import type { Metric, Registry } from 'prom-client';

/** A metric with all of its series, which Prometheus calls a metric family. */
export interface Family {
  readonly name: string;
  readonly type: 'counter' | 'gauge' | 'histogram';
  /** The labels of its series, except for the `le` of a histogram. */
  readonly labels: readonly string[];
  readonly help: string;
  /** Returns the current samples. It is called at each scrape, and no two samples may have the same labels. */
  readonly samples: () => Iterable<Sample>;
  /** How the samples of several threads become one. `first` takes that of the main thread. @default 'sum' */
  readonly merge?: MergeOfThreads;
}

export type MergeOfThreads = 'sum' | 'min' | 'max' | 'first';

/** A family with its samples at one time, as plain data that a thread can send to another. */
export interface FamilySnapshot extends Omit<Family, 'samples'> {
  readonly samples: readonly Sample[];
}

export interface Sample {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
  /** Suffix of a histogram's name. */
  readonly suffix?: '_bucket' | '_sum' | '_count';
}

/** Creates a metric with a single series. */
export function gauge(name: string, help: string, value: () => number, merge: MergeOfThreads = 'sum'): Family {
  return { name, type: 'gauge', labels: [], help, merge, samples: () => [{ labels: {}, value: value() }] };
}

export function counter(name: string, help: string, value: () => number, merge: MergeOfThreads = 'sum'): Family {
  return { ...gauge(name, help, value, merge), type: 'counter' };
}

/** Creates samples that differ in one label. The keys of `values` are the values of that label. */
export function samplesBy(label: string, values: Readonly<Record<string, number>>): readonly Sample[] {
  return Object.entries(values).map(([text, value]) => ({ labels: { [label]: text }, value }));
}

const mergeValues: Readonly<Record<MergeOfThreads, (one: number, other: number) => number>> = {
  sum: (one, other) => one + other,
  min: Math.min,
  max: Math.max,
  first: (one) => one,
};

/** Merges samples with the same labels, because no two series of a metric may have the same. */
export function mergeByLabels(samples: Iterable<Sample>, merge: MergeOfThreads = 'sum'): Iterable<Sample> {
  const merged = new Map<string, Sample>();
  for (const sample of samples) {
    const key = JSON.stringify([sample.suffix, ...Object.values(sample.labels)]);
    const known = merged.get(key);
    const value = known === undefined ? sample.value : mergeValues[merge](known.value, sample.value);
    merged.set(key, { ...sample, value });
  }
  return merged.values();
}

export interface Metrics {
  /** Renders the current values. */
  readonly read: () => Promise<{ readonly contentType: string; readonly text: string }>;
  /** Returns the current values. */
  readonly snapshot: () => readonly FamilySnapshot[];
}

/** Uses prom-client only to format the samples. */
export function createMetricsOf(families: readonly Family[]): Metrics {
  let loading: Promise<Registry> | undefined;
  return Object.freeze({
    async read() {
      loading ??= registryOf(families);
      const registry = await loading;
      let text = '';
      for (const { name } of families) {
        text += `${await registry.getSingleMetricAsString(name)}\n`;
        // A thousand mappings have 29,000 lines. Let requests run in between.
        await setImmediate();
      }
      return { contentType: registry.contentType, text };
    },
    snapshot: () => families.map(({ samples, ...family }) => ({ ...family, samples: [...samples()] })),
  });
}

async function registryOf(families: readonly Family[]): Promise<Registry> {
  const prometheus = await import('prom-client');
  const registry = new prometheus.Registry();
  for (const { name, type, help, samples } of families) {
    const get = () => ({ name, type, help, values: Array.from(samples(), (sample) => metricValue(name, sample)) });
    // The types allow only prom-client's metric classes, but the registry uses only these two members.
    registry.registerMetric({ name, get } as unknown as Metric);
  }
  return registry;
}

function metricValue(name: string, { labels, value, suffix }: Sample) {
  return { labels, value, metricName: suffix === undefined ? name : `${name}${suffix}` };
}
