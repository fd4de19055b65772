/** Limits in the format of envoyproxy/ratelimit, and what they become; what is refused is in the golden files. */
import assert from 'node:assert/strict';
import { configurationFrom } from '#config';

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
    const limit = { unit: 'hour', requestsPerUnit: 5, unlimited: false, name: 'slow' };
    const inner = { key: 'path', value: undefined, limit: undefined, descriptors: [], source };
    assert.deepEqual(read({ domain: 'gateway', descriptors }), [
      { domain: 'gateway', descriptors: [{ key: 'user', value: 'demo', limit, descriptors: [inner], source }], source },
    ]);
  });

  function check(limit: unknown, expected: unknown): void {
    it(`reads ${JSON.stringify(limit)}`, () => {
      assert.deepEqual(
        read({ domain: 'a', descriptors: [{ key: 'k', rate_limit: limit }] })[0]?.descriptors[0]?.limit,
        expected,
      );
    });
  }

  for (const unit of ['second', 'minute', 'hour', 'day', 'week', 'month', 'year']) {
    check({ unit, requests_per_unit: 1 }, { unit, requestsPerUnit: 1, unlimited: false, name: undefined });
  }
  check(
    { unit: 'MINUTE', requests_per_unit: 0 },
    { unit: 'minute', requestsPerUnit: 0, unlimited: false, name: undefined },
  );
  check(
    { unit: 'day', requests_per_unit: 4_294_967_295 },
    { unit: 'day', requestsPerUnit: 4_294_967_295, unlimited: false, name: undefined },
  );
  check({ unlimited: true }, { unit: 'second', requestsPerUnit: 0, unlimited: true, name: undefined });

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
