/** The text format of Prometheus: whatever stands in a label comes out of a parser again. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import parse from 'parse-prometheus-text-format';
import { type Family, formatFamilies } from '../../src/metrics/exposition.ts';

const family = (samples: Family['samples'], help = 'Help.'): Family => ({
  name: 'one_total',
  type: 'counter',
  labels: ['label'],
  help,
  samples,
});

describe('the exposition', () => {
  it('is a line a sample, below what the metric is', async () => {
    const samples = () => [
      { labels: {}, value: 1 },
      { labels: { label: 'a', other: 'b' }, value: 2.5 },
    ];
    assert.equal(
      await formatFamilies([family(samples)]),
      '# HELP one_total Help.\n# TYPE one_total counter\none_total 1\none_total{label="a",other="b"} 2.5\n',
    );
  });

  it('has one line for a label and a help text of several, with quotes and backslashes', async () => {
    const text = await formatFamilies([family(() => [{ labels: { label: 'a"b\\c\nd' }, value: 1 }], 'a\\b\nc "d"')]);
    assert.deepEqual(text.split('\n'), [
      '# HELP one_total a\\\\b\\nc "d"',
      '# TYPE one_total counter',
      'one_total{label="a\\"b\\\\c\\nd"} 1',
      '',
    ]);
  });

  it('gives every label and every number back', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.string({ unit: 'binary' }),
        fc.double({ noNaN: true, noDefaultInfinity: true }),
        async (label, value) => {
          const text = await formatFamilies([family(() => [{ labels: { label }, value }])]);
          const [found] = parse(text);
          assert.deepEqual(found?.metrics[0]?.labels, { label });
          assert.equal(Number(found?.metrics[0]?.value), value + 0);
        },
      ),
    );
  });

  it('lets others do their work while there is much to write', async () => {
    let isOver = false;
    const samples = Array.from({ length: 5_000 }, (_, index) => ({ labels: { label: String(index) }, value: index }));
    const writing = formatFamilies([family(() => samples)]).finally(() => {
      isOver = true;
    });
    await new Promise(setImmediate);
    assert.equal(isOver, false);
    assert.equal((await writing).split('\n').length, 5_003);
  });
});
