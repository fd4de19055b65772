/** The Prometheus text format of metrics, read back by a parser. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { createMetricsOf, type Family } from '../../src/metrics/registry.ts';
import { anyCharacter } from '../support/any-character.ts';
import { parsePrometheusText } from '../support/scrape.ts';

const family = (samples: Family['samples'], more: Partial<Family> = {}): Family => ({
  name: 'one_total',
  type: 'counter',
  labels: ['label'],
  help: 'Help.',
  samples,
  ...more,
});

const textOf = async (...families: readonly Family[]) => (await createMetricsOf(families).read()).text;

describe('the metrics registry', () => {
  it('preserves every label and number, including quotes, backslashes and line breaks', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.oneof(fc.string({ unit: anyCharacter }), fc.constant('a"b\\c\nd')),
        fc.double({ noNaN: true, noDefaultInfinity: true }),
        async (label, value) => {
          const [found] = parsePrometheusText(await textOf(family(() => [{ labels: { label }, value }])));
          assert.deepEqual(found?.metrics[0]?.labels, { label });
          assert.equal(Number(found?.metrics[0]?.value), value + 0);
        },
      ),
    );
  });

  it('yields to other work between metrics', async () => {
    let isOver = false;
    const reading = textOf(...Array.from({ length: 20 }, (_, index) => family(() => [], { name: `n${index}` })));
    void reading.then(() => {
      isOver = true;
    });
    // The first read loads the library. This check runs in between.
    await createMetricsOf([family(() => [])]).read();
    await new Promise(setImmediate);
    assert.equal(isOver, false);
    await reading;
  });
});
