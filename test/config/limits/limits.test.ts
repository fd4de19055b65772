/** Tests that limits in the format of envoyproxy/ratelimit are read correctly. The golden files cover invalid ones. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';
import { configurationFrom, formatErrors, type LimitDomain, loadConfiguration } from '#config';
import { type Unit, windowSeconds } from '#ratelimit/limit';
import { plain } from '../../support/limits.ts';
import { temporaryFiles } from '../../support/temporary-files.ts';
import { untyped } from '../../support/untyped.ts';

function read(...limits: readonly unknown[]) {
  const { configuration, errors } = configurationFrom(untyped({ records: [], limits }));
  assert.deepEqual(errors, []);
  return configuration.limits;
}

/** From https://github.com/envoyproxy/ratelimit at f2fb157: its example, and files of its tests. */
const examples = fileURLToPath(new URL('../../fixtures/envoyproxy-ratelimit', import.meta.url));
const writeFiles = temporaryFiles();

const source = { file: '<options>', line: 1 };

describe('a domain of limits', () => {
  it('can be empty', () => {
    assert.deepEqual(read({ domain: 'gateway' }), [{ domain: 'gateway', descriptors: [], source }]);
  });

  it('can nest descriptors, with and without a value', () => {
    const rate_limit = { unit: 'hour', requests_per_unit: 5, name: 'slow' };
    const user = { key: 'user', value: 'demo', rate_limit, descriptors: [{ key: 'path' }] };
    const limits = [{ ...plain, unit: 'hour', requestsPerUnit: 5, name: 'slow' }];
    const rest = { shareThreshold: false, detailedMetric: false, valueToMetric: false, source };
    const inner = { key: 'path', value: undefined, limits: [], descriptors: [], ...rest };
    const descriptors = [{ key: 'user', value: 'demo', limits, descriptors: [inner], ...rest }];
    assert.deepEqual(read({ domain: 'gateway', descriptors: [user] }), [{ domain: 'gateway', descriptors, source }]);
  });

  it('can use shadow mode, share a counter, and split metrics by value', () => {
    const rate_limit = ['minute', 'hour'].map((unit) => ({ unit, requests_per_unit: 5 }));
    const flags = { shadow_mode: true, share_threshold: true, detailed_metric: true };
    const [domain] = read({ domain: 'a', descriptors: [{ key: 'k', value: 'a*b', rate_limit, ...flags }] });
    const { value, shareThreshold, detailedMetric, limits = [] } = domain?.descriptors[0] ?? {};
    const shadows = limits.map(({ shadowMode }) => shadowMode);
    assert.deepEqual([value, shareThreshold, detailedMetric, ...shadows], ['a*b', true, true, true, true]);
  });

  it('accepts what envoyproxy/ratelimit accepts: numbers as text, keys without a value, metadata, quotas, metrics by value', () => {
    const [domain] = configurationFrom({
      records: [],
      limits: [
        {
          domain: 'a',
          descriptors: [
            { key: 'k', value: 5, quota_mode: true, rate_limit: { unit: 'day' }, metadata: { a: [{ b: 1 }] } },
            { key: 'k', value: true, value_to_metric: true, rate_limit: null, descriptors: null },
            { key: 'k', value: '', shadow_mode: true, rate_limit: { unlimited: true }, metadata: null },
          ],
        },
      ],
    }).configuration.limits;
    assert.deepEqual(
      domain?.descriptors.map(({ value, valueToMetric, limits }) => [value, valueToMetric, limits[0]?.quotaMode]),
      [
        ['5', false, true],
        ['true', true, undefined],
        [undefined, false, false],
      ],
    );
  });

  it('keeps the spelling of values, even if YAML would read a different number', async () => {
    const spelled = ['1.10', '1.1', '010', '0x1F', '9007199254740993', 'True', '.inf'];
    const lines = [...spelled, '"1.100"', '*one'].map((value) => `  - { key: 1.0, value: ${value} }\n`).join('');
    const text = `domain: 1e3\ndescriptors:\n  - { key: anchored, value: &one 1.0 }\n${lines}`;
    const directory = await writeFiles({ 'ratelimit/a.yaml': text });
    const { configuration, errors } = await loadConfiguration(directory);
    const [{ domain, descriptors } = assert.fail()] = configuration.limits;
    assert.deepEqual([errors, domain, descriptors[1]?.key], [[], '1e3', '1.0']);
    assert.deepEqual(
      descriptors.map(({ value }) => value),
      ['1.0', ...spelled, '1.100', '1.0'],
    );
  });

  for (const name of readdirSync(examples))
    it(`can be read from a file of envoyproxy/ratelimit: ${name}`, async () => {
      const directory = await writeFiles({ 'ratelimit/a.yaml': readFileSync(join(examples, name), 'utf8') });
      const { configuration, errors } = await loadConfiguration(directory);
      assert.deepEqual([errors, configuration.limits.length], [[], 1]);
    });

  it('can have the same key with several values and without one', () => {
    const values = [{}, { value: 'b' }, { value: 'c' }, { value: 'b_c' }].map((fields) => ({ key: 'a', ...fields }));
    const descriptors = [...values, { key: 'a_b', value: 'c' }];
    assert.equal(read({ domain: 'gateway', descriptors })[0]?.descriptors.length, 5);
  });

  const descriptor = (key: string, value: string) => `  - { key: ${key}, value: ${value} }\n`;
  const entriesOf = ({ descriptors }: LimitDomain) =>
    descriptors.map(({ key, value, source: { file } }) => [key, value, file]);

  it('can be defined in several files, and in several documents of one', async () => {
    const directory = await writeFiles({
      'ratelimit/a.yaml': `domain: edge\ndescriptors:\n${descriptor('user', 'ann')}---\ndomain: other\n`,
      'ratelimit/b.yaml': `domain: edge\ndescriptors:\n${descriptor('user', 'bob')}---\ndomain: edge\ndescriptors:\n${descriptor('plan', 'free')}`,
    });
    const { configuration, errors } = await loadConfiguration(directory);
    const [edge = assert.fail(), other, ...others] = configuration.limits;
    assert.deepEqual([errors, other?.domain, others], [[], 'other', []]);
    assert.deepEqual(entriesOf(edge), [
      ['user', 'ann', `${directory}/ratelimit/a.yaml`],
      ['user', 'bob', `${directory}/ratelimit/b.yaml`],
      ['plan', 'free', `${directory}/ratelimit/b.yaml`],
    ]);
  });

  it('gets an error that names both files if they have the same descriptor', async () => {
    const directory = await writeFiles({
      'ratelimit/a.yaml': `domain: edge\ndescriptors:\n${descriptor('user', 'ann')}`,
      'ratelimit/b.yaml': `domain: edge\ndescriptors:\n${descriptor('user', 'bob')}${descriptor('user', 'ann')}`,
    });
    const { errors } = await loadConfiguration(directory);
    assert.equal(
      formatErrors(errors, directory),
      'ratelimit/b.yaml:4  domain edge: the key "user" with this value is already in this domain (ratelimit/a.yaml:3)\n    Keep one of the two.',
    );
  });

  it('prevents the use of the other domains if it is invalid', () => {
    const limits = [{ domain: 'a' }, { domain: 'b', descriptors: [{}] }, 'c'];
    const { configuration, errors } = configurationFrom(untyped({ records: [], limits }));
    const found = errors.map(({ source: { line }, record, message }) => `${line} ${record}: ${message}`);
    assert.equal(configuration.limits.length, 0);
    assert.deepEqual(found, [
      '2 domain b: descriptors[0].key is missing',
      '3 undefined: the document must be a map, not a string',
    ]);
  });
});

describe('a limit', () => {
  /** Each line has the input and, after the arrow, the limits that it is read as, both in YAML. */
  function check(lines: string): void {
    for (const line of lines.trim().split('\n')) {
      const [written = '', expected = ''] = line.trim().split(/ +-> +/);
      it(`reads ${written}`, () => {
        const [domain] = read({ domain: 'a', descriptors: [{ key: 'k', rate_limit: parse(written) }] });
        const limits = parse(`[${expected}]`).map((one: object) => ({ ...plain, ...one }));
        assert.deepEqual(domain?.descriptors[0]?.limits, limits);
      });
    }
  }

  // The golden files cover windows of more than a century.
  check(`
    { unit: MINUTE, requests_per_unit: 0 }             -> { unit: minute, requestsPerUnit: 0 }
    { unit: day, requests_per_unit: 4294967295 }       -> { unit: day, requestsPerUnit: 4294967295 }
    { unit: hour }                                     -> { unit: hour, requestsPerUnit: 0 }
    { unlimited: true, requests_per_unit: 5 }          -> { unlimited: true, requestsPerUnit: 5 }
    { unlimited: true }                                -> { unlimited: true }
    { unit: null, unlimited: true }                    -> { unlimited: true }
    { unit: day, requests_per_unit: null, unlimited: null, name: null, replaces: null } -> { unit: day }
    { unit: hour, requests_per_unit: 5, name: "" }     -> { unit: hour, requestsPerUnit: 5 }
    { unlimited: true, name: b, replaces: [{ name: a }] } -> { unlimited: true, name: b, replaces: [a] }
    { unit: hour, requests_per_unit: 5, unit_multiplier: 30 } -> { unit: hour, requestsPerUnit: 5, unitMultiplier: 30 }
    { unit: week, requests_per_unit: 5, algorithm: sliding_window } -> { unit: week, requestsPerUnit: 5, algorithm: sliding_window }
    { unit: month, requests_per_unit: 5, algorithm: token_bucket, burst: 20 } -> { unit: month, requestsPerUnit: 5, algorithm: token_bucket, burst: 20 }
    { unit: year, requests_per_unit: 1, unit_multiplier: 100 } -> { unit: year, requestsPerUnit: 1, unitMultiplier: 100 }
    { unit: year, requests_per_unit: 1, algorithm: token_bucket, burst: 100 } -> { unit: year, requestsPerUnit: 1, algorithm: token_bucket, burst: 100 }
    { unit: second, requests_per_unit: 4000000000, algorithm: token_bucket } -> { unit: second, requestsPerUnit: 4000000000, algorithm: token_bucket }
    [{ unit: minute, requests_per_unit: 5 }, { unit: second, requests_per_unit: 5 }] -> { unit: minute, requestsPerUnit: 5 }, { unit: second, requestsPerUnit: 5 }
  `);

  it('has the same windows as in envoyproxy/ratelimit', () => {
    const seconds = { second: 2, minute: 120, hour: 7200, day: 172_800, week: 1_209_600, month: 5_184_000 };
    for (const [unit, expected] of Object.entries({ ...seconds, year: 63_072_000 })) {
      assert.equal(windowSeconds({ unit: unit as Unit, unitMultiplier: 2 }), expected);
    }
  });
});
