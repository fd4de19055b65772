/** The text format of Prometheus, version 0.0.4: https://prometheus.io/docs/instrumenting/exposition_formats/. */
import { setImmediate as otherWork } from 'node:timers/promises';

export type Labels = Readonly<Record<string, string>>;

export interface Sample {
  readonly labels: Labels;
  readonly value: number;
  /** What a histogram adds to its name. */
  readonly suffix?: '_bucket' | '_sum' | '_count';
}

/** A metric with all of its series. */
export interface Family {
  readonly name: string;
  readonly type: 'counter' | 'gauge' | 'histogram';
  /** Of its series; a histogram's `le` goes without saying. */
  readonly labels: readonly string[];
  readonly help: string;
  /** Read anew at each scrape; no two of them have the same labels. */
  readonly samples: () => Iterable<Sample>;
}

export const contentType = 'text/plain; version=0.0.4; charset=utf-8';

/** With 10,000 mappings there are hundreds of thousands of lines: requests must not wait for all of them. */
const linesAtOnce = 1_000;

export async function formatFamilies(families: readonly Family[]): Promise<string> {
  let text = '';
  let lines = 0;
  for (const family of families) {
    for (const line of linesOf(family)) {
      text += line;
      lines += 1;
      if (lines % linesAtOnce === 0) await otherWork();
    }
  }
  return text;
}

function* linesOf({ name, type, help, samples }: Family): Generator<string> {
  yield `# HELP ${name} ${escapeText(help)}\n# TYPE ${name} ${type}\n`;
  for (const { labels, value, suffix = '' } of samples()) yield `${name}${suffix}${formatLabels(labels)} ${value}\n`;
}

function formatLabels(labels: Labels): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escapeText(value).replaceAll('"', '\\"')}"`);
  return pairs.length === 0 ? '' : `{${pairs.join(',')}}`;
}

function escapeText(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n');
}
