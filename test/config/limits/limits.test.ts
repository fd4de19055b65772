/** Limits in the format of envoyproxy/ratelimit, and what they become; what is refused is in the golden files. */
import assert from 'node:assert/strict';
import { configurationFrom } from '#config';
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
    const descriptors = [
      {
        key: 'user',
        value: 'demo',
        rate_limit: { unit: 'hour', requests_per_unit: 5, name: 'slow' },
        descriptors: [{ key: 'path' }],
      },
    ];
    const limits = [{ ...plain, unit: 'hour', requestsPerUnit: 5, name: 'slow' }];
    const rest = { shareThreshold: false, detailedMetric: false, source };
    const inner = { key: 'path', value: undefined, limits: [], descriptors: [], ...rest };
    assert.deepEqual(read({ domain: 'gateway', descriptors }), [
      {
        domain: 'gateway',
        descriptors: [{ key: 'user', value: 'demo', limits, descriptors: [inner], ...rest }],
        source,
      },
    ]);
  });

  function check(limit: unknown, ...expected: readonly object[]): void {
    it(`reads ${JSON.stringify(limit)}`, () => {
      assert.deepEqual(
        read({ domain: 'a', descriptors: [{ key: 'k', rate_limit: limit }] })[0]?.descriptors[0]?.limits,
        expected.map((one) => ({ ...plain, ...one })),
      );
    });
  }

  for (const unit of ['second', 'minute', 'hour', 'day', 'week', 'month', 'year']) {
    check({ unit, requests_per_unit: 1 }, { unit, requestsPerUnit: 1 });
  }
  check({ unit: 'MINUTE', requests_per_unit: 0 }, { unit: 'minute', requestsPerUnit: 0 });
  check({ unit: 'day', requests_per_unit: 4_294_967_295 }, { unit: 'day', requestsPerUnit: 4_294_967_295 });
  check({ unlimited: true }, { unlimited: true });

  check(
    { unlimited: true, name: 'free', replaces: [{ name: 'a' }] },
    { unlimited: true, name: 'free', replaces: ['a'] },
  );
  check(
    { unit: 'second', unit_multiplier: 30, requests_per_unit: 5 },
    { unit: 'second', unitMultiplier: 30, requestsPerUnit: 5 },
  );
  check(
    { unit: 'minute', requests_per_unit: 5, algorithm: 'token_bucket', burst: 20 },
    { unit: 'minute', requestsPerUnit: 5, algorithm: 'token_bucket', burst: 20 },
  );
  check(
    { unit: 'minute', requests_per_unit: 5, algorithm: 'sliding_window' },
    { unit: 'minute', requestsPerUnit: 5, algorithm: 'sliding_window' },
  );
  check(
    [
      { unit: 'minute', requests_per_unit: 5 },
      { unit: 'second', requests_per_unit: 1 },
      { unit: 'second', requests_per_unit: 1, algorithm: 'token_bucket' },
    ],
    { unit: 'minute', requestsPerUnit: 5 },
    { unit: 'second', requestsPerUnit: 1 },
    { unit: 'second', requestsPerUnit: 1, algorithm: 'token_bucket' },
  );

  it('may be in shadow mode, share a counter and tell its values apart', () => {
    const rate_limit = [
      { unit: 'minute', requests_per_unit: 5 },
      { unit: 'hour', requests_per_unit: 9 },
    ];
    const flags = { shadow_mode: true, share_threshold: true, detailed_metric: true };
    const [found] =
      read({ domain: 'a', descriptors: [{ key: 'k', value: 'a*b', rate_limit, ...flags }] })[0]?.descriptors ?? [];
    assert.deepEqual([found?.value, found?.shareThreshold, found?.detailedMetric], ['a*b', true, true]);
    assert.deepEqual(
      found?.limits.map(({ shadowMode }) => shadowMode),
      [true, true],
    );
  });

  it('may have one key with several values and without one', () => {
    const descriptors = [
      { key: 'a' },
      { key: 'a', value: 'b' },
      { key: 'a', value: 'c' },
      { key: 'a_b', value: 'c' },
      { key: 'a', value: 'b_c' },
    ];
    assert.equal(read({ domain: 'gateway', descriptors })[0]?.descriptors.length, 5);
  });

  it('is refused alone: the other domains stay', () => {
    const { configuration, errors } = configurationFrom({
      records: [],
      limits: [{ domain: 'a' }, { domain: 'b', descriptors: [{}] }, { domain: 'a' }, 'c'],
    });
    assert.deepEqual(
      configuration.limits.map(({ domain }) => domain),
      ['a'],
    );
    assert.deepEqual(
      errors.map(({ source: { line }, record, message }) => [line, record, message]),
      [
        [2, 'domain b', 'descriptors[0].key is missing'],
        [3, 'domain a', 'there is already a domain of this name'],
        [4, undefined, 'the document must be a map, not a string'],
      ],
    );
  });
});
