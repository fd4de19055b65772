/** Rows as Prometheus text: a parser reads back every label and number. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import parse from 'parse-prometheus-text-format';
import { createMetricsOf, type Family } from '../../src/metrics/registry.ts';

const family = (samples: Family['samples'], more: Partial<Family> = {}): Family => ({
  ...{ name: 'one_total', type: 'counter', labels: ['label'], help: 'Help.', samples },
  ...more,
});

const textOf = async (...families: readonly Family[]) => (await createMetricsOf(families).read()).text;

describe('the metrics registry', () => {
  it('writes a line for each sample, below the help and the type', async () => {
    const samples = () => [
      { labels: {}, value: 1 },
      { labels: { label: 'a', other: 'b' }, value: 2.5 },
    ];
    const bucket = () => [{ labels: { le: '1' }, value: 3, suffix: '_bucket' as const }];
    assert.equal(
      await textOf(family(samples), family(bucket, { name: 'two', type: 'histogram' })),
      [
        '# HELP one_total Help.',
        '# TYPE one_total counter',
        'one_total 1',
        'one_total{label="a",other="b"} 2.5',
        '# HELP two Help.',
        '# TYPE two histogram',
        'two_bucket{le="1"} 3',
        '',
      ].join('\n'),
    );
  });

  it('reads the values at each scrape', async () => {
    let value = 1;
    const metrics = createMetricsOf([family(() => [{ labels: {}, value }])]);
    for (value of [1, 2]) assert.match((await metrics.read()).text, new RegExp(`^one_total ${value}$`, 'm'));
  });

  it('keeps every label and every number, also quotes, backslashes and line breaks', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.oneof(fc.string({ unit: 'binary' }), fc.constant('a"b\\c\nd')),
        fc.double({ noNaN: true, noDefaultInfinity: true }),
        async (label, value) => {
          const [found] = parse(await textOf(family(() => [{ labels: { label }, value }])));
          assert.deepEqual(found?.metrics[0]?.labels, { label });
          assert.equal(Number(found?.metrics[0]?.value), value + 0);
        },
      ),
    );
  });

  it('lets other work run between two metrics', async () => {
    let isOver = false;
    const reading = textOf(...Array.from({ length: 20 }, (_, index) => family(() => [], { name: `n${index}` })));
    void reading.then(() => {
      isOver = true;
    });
    // The first read loads the library; this turn comes in between.
    await createMetricsOf([family(() => [])]).read();
    await new Promise(setImmediate);
    assert.equal(isOver, false);
    await reading;
  });
});
