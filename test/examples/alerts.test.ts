/** The recipe for alerts, and the scrape configuration in the README of metrics, checked with promtool if installed. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';
import { isInstalled } from '../support/programs/installed.ts';
import { promtool } from '../support/programs/promtool.ts';
import { temporaryFiles } from '../support/temporary-files.ts';
import { labelsOf, usesIn, wrongUsesIn } from './metric-uses.ts';

interface Rules {
  readonly groups: readonly { readonly rules: readonly { readonly alert: string; readonly expr: string }[] }[];
}

interface Units {
  readonly tests: readonly {
    readonly input_series: readonly { readonly series: string }[];
    readonly alert_rule_test: readonly { readonly alertname: string; readonly exp_alerts: readonly object[] }[];
  }[];
}

const fileOf = (name: string) => fileURLToPath(new URL(name, import.meta.url));
const textOf = (name: string) => readFileSync(fileOf(name), 'utf8');

describe('the alerts', () => {
  const rules = (parse(textOf('../../config/recipes/alerts.yaml')) as Rules).groups.flatMap((group) => group.rules);
  const units = (parse(textOf('alerts.unit.yaml'), { merge: true }) as Units).tests;
  const writeFiles = temporaryFiles();

  it('use only existing metrics and labels', () => {
    assert.ok(rules.flatMap(({ expr }) => usesIn(expr)).length > rules.length);
    assert.deepEqual(
      rules.flatMap(({ expr }) => wrongUsesIn(expr)),
      [],
    );
  });

  it('are tested with series that have the labels of the metrics', () => {
    const series = units.flatMap(({ input_series }) => input_series).filter((one) => !one.series.startsWith('up{'));
    for (const one of series) {
      const [use] = usesIn(one.series);
      assert.deepEqual(use?.labels.toSorted(), labelsOf.get(use?.name ?? '')?.toSorted(), one.series);
    }
  });

  it('are each tested both to fire and not to fire', () => {
    const tested = (fires: boolean) =>
      new Set(
        units.flatMap(({ alert_rule_test }) =>
          alert_rule_test.filter(({ exp_alerts }) => exp_alerts.length > 0 === fires).map(({ alertname }) => alertname),
        ),
      );
    const names = new Set(rules.map(({ alert }) => alert));
    assert.deepEqual([tested(true), tested(false)], [names, names]);
  });

  it('pass their unit tests in promtool', function () {
    if (!isInstalled('promtool')) this.skip();
    promtool(['check', 'rules', '--lint-fatal', fileOf('../../config/recipes/alerts.yaml')]);
    assert.match(promtool(['test', 'rules', fileOf('alerts.unit.yaml')]), /SUCCESS/);
  });

  it('have a scrape configuration that promtool accepts', async function () {
    if (!isInstalled('promtool')) this.skip();
    const [, configuration = ''] =
      /```yaml\n(scrape_configs:\n[^`]*)```/.exec(textOf('../../src/metrics/README.md')) ?? [];
    const directory = await writeFiles({ 'prometheus.yaml': configuration });
    assert.match(promtool(['check', 'config', join(directory, 'prometheus.yaml')]), /SUCCESS/);
  });
});
