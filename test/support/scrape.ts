/** Scrapes the metrics of a desk, with a third-party parser of Prometheus' text format. */
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import request from 'supertest';
import type { TestDesk } from './desks.ts';

/** The members that the tests use. */
interface ParsedFamily {
  readonly name: string;
  readonly help: string;
  readonly type: string;
  readonly metrics: readonly ParsedSample[];
}

interface ParsedSample {
  readonly labels?: Readonly<Record<string, string>>;
  readonly value: string;
}

const require = createRequire(import.meta.url);

// The package has no type declarations, so TypeScript rejects an import of it.
export const parsePrometheusText: (text: string) => readonly ParsedFamily[] = require('parse-prometheus-text-format');

/** Values by name and label values: `frontdesk_requests_total hotel 2xx`, `frontdesk_request_duration_seconds_bucket hotel 0.5`. */
export type Series = Readonly<Record<string, number>>;

export function seriesOf(text: string): Series {
  // The parser mixes up histograms with labels, but reads their lines correctly without the type.
  const entries = parsePrometheusText(text.replace(/^# TYPE \S+ histogram\n/gm, '')).flatMap(({ name, metrics }) =>
    metrics.map(({ labels = {}, value }) => [[name, ...Object.values(labels)].join(' '), Number(value)] as const),
  );
  assert.equal(new Set(entries.map(([key]) => key)).size, entries.length, 'a series appears twice');
  return Object.fromEntries(entries);
}

/** Reads the admin port, whose requests are not counted. */
export async function scrape(desk: TestDesk): Promise<Series> {
  const { admin } = await desk.listen();
  const { text } = await request(admin.url).get('/metrics').expect(200);
  return seriesOf(text);
}

/** The series of one metric by their label values. */
export function among(series: Series, name: string): Series {
  const own = Object.entries(series).filter(([key]) => key === name || key.startsWith(`${name} `));
  return Object.fromEntries(own.map(([key, value]) => [key.slice(name.length + 1), value]));
}
