/** The metrics of several threads become those of their process. */
import assert from 'node:assert/strict';
import { countedIn, createMetricsOfThreads, mergeSnapshots } from '#metrics';
import { counter, createMetricsOf, type Family, gauge } from '../../src/metrics/registry.ts';
import { seriesOf } from '../support/scrape.ts';

const snapshotOf = (...families: readonly Family[]) => createMetricsOf(families).snapshot();

describe('mergeSnapshots', () => {
  it('sums counters and gauges by their labels, but for those that are the same in all threads', async () => {
    const thread = (value: number) =>
      snapshotOf(
        counter('requests_total', 'Requests.', () => value),
        gauge('generation', 'Generation.', () => value, 'first'),
        gauge('circuit_open', 'Circuit.', () => value, 'max'),
        gauge('healthy', 'Health.', () => value, 'min'),
        {
          ...counter('hits_total', 'Hits.', () => 0),
          labels: ['limit'],
          samples: () => [
            { labels: { limit: 'a' }, value },
            { labels: { limit: `only-${value}` }, value },
          ],
        },
      );
    const { text } = await createMetricsOfThreads(async () => mergeSnapshots([thread(2), thread(5)])).read();
    assert.deepEqual(seriesOf(text), {
      requests_total: 7,
      generation: 2,
      circuit_open: 5,
      healthy: 2,
      'hits_total a': 7,
      'hits_total only-2': 2,
      'hits_total only-5': 5,
    });
  });

  it('keeps the buckets of a histogram apart from its sum and count', () => {
    const histogram: Family = {
      name: 'seconds',
      type: 'histogram',
      labels: [],
      help: 'Duration.',
      samples: () => [
        { suffix: '_bucket', labels: { le: '+Inf' }, value: 3 },
        { suffix: '_sum', labels: {}, value: 0.5 },
        { suffix: '_count', labels: {}, value: 3 },
      ],
    };
    const [merged] = mergeSnapshots([snapshotOf(histogram), snapshotOf(histogram)]);
    assert.deepEqual(
      merged?.samples.map(({ suffix, value }) => [suffix, value]),
      [
        ['_bucket', 6],
        ['_sum', 1],
        ['_count', 6],
      ],
    );
  });

  it('keeps what a thread had counted that has ended, and none of its gauges', () => {
    const ended = snapshotOf(
      counter('requests_total', 'Requests.', () => 4),
      counter('reloads_total', 'Reloads.', () => 1, 'first'),
      gauge('connections', 'Connections.', () => 9),
    );
    const left = snapshotOf(
      counter('requests_total', 'Requests.', () => 1),
      gauge('connections', 'Connections.', () => 2),
    );
    const values = mergeSnapshots([left, countedIn(ended)]).map(({ name, samples }) => [name, samples[0]?.value]);
    assert.deepEqual(values, [
      ['requests_total', 5],
      ['connections', 2],
    ]);
  });
});
