/** Limits in the format of envoyproxy/ratelimit, and what they become; the golden files have those that are refused. */
import assert from 'node:assert/strict';
import { configurationFrom, windowSeconds } from '#config';
import { plain } from '../../support/limits.ts';

function read(...limits: readonly unknown[]) {
  const { configuration, errors } = configurationFrom({ records: [], limits });
  assert.deepEqual(errors, []);
  return configuration.limits;
}

const source = { file: '<options>', line: 1 };

describe('a domain of limits', () => {
  it('may be empty', () => {
    assert.deepEqual(read({ domain: 'gateway' }), [{ domain: 'gateway', descriptors: [], source }]);
  });

  it('has descriptors in descriptors, with a value or without', () => {
    const rate_limit = { unit: 'hour', requests_per_unit: 5, name: 'slow' };
    const user = { key: 'user', value: 'demo', rate_limit, descriptors: [{ key: 'path' }] };
    const limits = [{ ...plain, unit: 'hour', requestsPerUnit: 5, name: 'slow' }];
    const rest = { shareThreshold: false, detailedMetric: false, source };
    const inner = { key: 'path', value: undefined, limits: [], descriptors: [], ...rest };
    const descriptors = [{ key: 'user', value: 'demo', limits, descriptors: [inner], ...rest }];
    assert.deepEqual(read({ domain: 'gateway', descriptors: [user] }), [{ domain: 'gateway', descriptors, source }]);
  });

  it('may be in shadow mode, share a counter and count its values apart in metrics', () => {
    const rate_limit = [
      { unit: 'minute', requests_per_unit: 5 },
      { unit: 'hour', requests_per_unit: 9 },
    ];
    const flags = { shadow_mode: true, share_threshold: true, detailed_metric: true };
    const [domain] = read({ domain: 'a', descriptors: [{ key: 'k', value: 'a*b', rate_limit, ...flags }] });
    const [found] = domain?.descriptors ?? [];
    assert.deepEqual([found?.value, found?.shareThreshold, found?.detailedMetric], ['a*b', true, true]);
    assert.deepEqual(
      found?.limits.map(({ shadowMode }) => shadowMode),
      [true, true],
    );
  });

  it('may have one key with several values and without one', () => {
    const values = [{}, { value: 'b' }, { value: 'c' }, { value: 'b_c' }].map((fields) => ({ key: 'a', ...fields }));
    const descriptors = [...values, { key: 'a_b', value: 'c' }];
    assert.equal(read({ domain: 'gateway', descriptors })[0]?.descriptors.length, 5);
  });

  it('is refused alone: the other domains stay', () => {
    const limits = [{ domain: 'a' }, { domain: 'b', descriptors: [{}] }, { domain: 'a' }, 'c'];
    const { configuration, errors } = configurationFrom({ records: [], limits });
    assert.deepEqual(
      configuration.limits.map(({ domain }) => domain),
      ['a'],
    );
    assert.deepEqual(
      errors.map(({ source: { line }, record, message }) => `${line} ${record}: ${message}`),
      [
        '2 domain b: descriptors[0].key is missing',
        '3 domain a: there is already a domain of this name',
        '4 undefined: the document must be a map, not a string',
      ],
    );
  });
});

describe('a limit', () => {
  function check(limit: unknown, ...expected: readonly object[]): void {
    it(`reads ${JSON.stringify(limit)}`, () => {
      assert.deepEqual(
        read({ domain: 'a', descriptors: [{ key: 'k', rate_limit: limit }] })[0]?.descriptors[0]?.limits,
        expected.map((one) => ({ ...plain, ...one })),
      );
    });
  }

  const few = { unit: 'minute', requests_per_unit: 5 };
  const read5 = { unit: 'minute', requestsPerUnit: 5 };
  check({ unit: 'MINUTE', requests_per_unit: 0 }, { unit: 'minute', requestsPerUnit: 0 });
  check({ unit: 'day', requests_per_unit: 4_294_967_295 }, { unit: 'day', requestsPerUnit: 4_294_967_295 });
  check({ unlimited: true }, { unlimited: true });
  check({ unlimited: true, name: 'b', replaces: [{ name: 'a' }] }, { unlimited: true, name: 'b', replaces: ['a'] });
  check({ ...few, unit_multiplier: 30 }, { ...read5, unitMultiplier: 30 });
  check({ ...few, algorithm: 'token_bucket', burst: 20 }, { ...read5, algorithm: 'token_bucket', burst: 20 });
  check({ ...few, algorithm: 'sliding_window' }, { ...read5, algorithm: 'sliding_window' });
  check(
    [few, { ...few, unit: 'second' }, { ...few, unit: 'second', algorithm: 'token_bucket' }],
    read5,
    { ...read5, unit: 'second' },
    { ...read5, unit: 'second', algorithm: 'token_bucket' },
  );

  for (const [unit, seconds] of [
    ['second', 2],
    ['minute', 120],
    ['hour', 7200],
    ['day', 172_800],
    ['week', 1_209_600],
    ['month', 5_184_000],
    ['year', 63_072_000],
  ] as const) {
    check({ unit, requests_per_unit: 1 }, { unit, requestsPerUnit: 1 });
    it(`of two ${unit}s counts over ${seconds} seconds, as envoyproxy/ratelimit does`, () => {
      assert.equal(windowSeconds({ unit, unitMultiplier: 2 }), seconds);
    });
  }

  function checkWindow(title: string, limit: object, ...faults: readonly string[]): void {
    it(`may ${faults.length === 0 ? '' : 'not '}${title}`, () => {
      const descriptors = [{ key: 'k', rate_limit: { unit: 'year', requests_per_unit: 1, ...limit } }];
      const { errors } = configurationFrom({ records: [], limits: [{ domain: 'd', descriptors }] });
      assert.deepEqual(
        errors.map(({ message }) => message),
        faults,
      );
    });
  }

  const tooLong = 'descriptors[0].rate_limit counts over more than a hundred years';
  const bucket = { algorithm: 'token_bucket' };
  checkWindow('count over a century', { unit_multiplier: 100 });
  checkWindow('count over more', { unit_multiplier: 101 }, tooLong);
  checkWindow('have a bucket that fills up in a century', { ...bucket, burst: 100 });
  checkWindow('have a bucket that takes longer', { ...bucket, burst: 101 }, tooLong);
  checkWindow('give a request less than a microsecond', { ...bucket, unit: 'second', requests_per_unit: 4e9 });
});
