/** Metrics as a stranger reads them: by a parser of the text format that is not ours. */
import assert from 'node:assert/strict';
import request from 'supertest';
import type { Frontdesk } from '../../src/index.ts';
import { parsePrometheusText } from './prometheus-text.ts';

/** Values by name and label values: `frontdesk_requests_total hotel 2xx`, `frontdesk_request_duration_seconds_bucket hotel 0.5`. */
export type Series = Readonly<Record<string, number>>;

export function seriesOf(text: string): Series {
  // The parser mixes up histograms with labels; their lines alone it reads as those of any other type.
  const entries = parsePrometheusText(text.replace(/^# TYPE \S+ histogram\n/gm, '')).flatMap(({ name, metrics }) =>
    metrics.map(({ labels = {}, value }) => [[name, ...Object.values(labels)].join(' '), Number(value)] as const),
  );
  assert.equal(new Set(entries.map(([key]) => key)).size, entries.length, 'a series came twice');
  return Object.fromEntries(entries);
}

/** By the admin port, which counts no request. */
export async function scrape(desk: Frontdesk): Promise<Series> {
  const { admin } = await desk.listen();
  const { text } = await request(admin?.url ?? '')
    .get('/metrics')
    .expect(200);
  return seriesOf(text);
}

/** Of one name, by their label values. */
export function among(series: Series, name: string): Series {
  const own = Object.entries(series).filter(([key]) => key === name || key.startsWith(`${name} `));
  return Object.fromEntries(own.map(([key, value]) => [key.slice(name.length + 1), value]));
}
