/** Tests configuration errors: suggestions for mistyped names, and the formatted text. */
import assert from 'node:assert/strict';
import * as fc from 'fast-check';
import { configurationFrom, formatErrors } from '#config';
import { didYouMean, editDistance, suggestion } from '../../src/config/errors.ts';

describe('suggestion', () => {
  const known = ['prefix', 'rewrite', 'service', 'timeout_ms', 'labels', 'label', 'auth_service'];

  it('returns the most similar known name, if one is similar enough', () => {
    const pairs =
      'prefx=prefix perfix=prefix Prefix=prefix rewrites=rewrite timeout=timeout_ms serivce=service labeels=labels';
    for (const [mistyped = '', expected] of pairs.split(' ').map((pair) => pair.split('='))) {
      assert.equal(suggestion(mistyped, known), expected);
      assert.equal(didYouMean(mistyped, known), `, did you mean "${expected}"?`);
    }
    for (const other of ['colour', 'ms', '']) assert.equal(didYouMean(other, known), '');
  });
});

describe('editDistance', () => {
  it('counts letters that are inserted, deleted, replaced or swapped', () => {
    const distances = ['ports', 'prt', 'part', 'prot', ''].map((word) => editDistance('port', word));
    assert.deepEqual(distances, [1, 1, 1, 1, 4]);
    assert.equal(editDistance('kitten', 'sitting'), 3);
  });

  it('is symmetric, 0 for equal words, and at most the length of the longer word', () => {
    const word = fc.string({ maxLength: 12 });
    void fc.assert(
      fc.property(word, word, (a, b) => {
        assert.equal(editDistance(a, b), editDistance(b, a));
        assert.equal(editDistance(a, a), 0);
        assert.ok(editDistance(a, b) <= Math.max(a.length, b.length));
      }),
    );
  });
});

describe('formatErrors', () => {
  const error = {
    source: { file: '/srv/app/config/services/hotel.yaml', line: 14 },
    record: 'Mapping hotel',
    message: 'unknown key "prefx", did you mean "prefix"?',
    remedy: 'Write "prefix", or remove it.',
  };
  const place = 'config/services/hotel.yaml:14';

  it('shows file, line, record and message, with the remedy on the next line', () => {
    const text = `${place}  Mapping hotel: ${error.message}\n    ${error.remedy}`;
    assert.equal(formatErrors([error], '/srv/app'), text);
    assert.equal(formatErrors([], '/srv/app'), '');
  });

  it('omits the record for an error of the whole file, and shows a second location if there is one', () => {
    const other = { file: '/srv/app/config/a.yaml', line: 2 };
    const [first] = formatErrors([{ ...error, record: undefined, other }, error], '/srv/app').split('\n');
    assert.equal(first, `${place}  ${error.message} (config/a.yaml:2)`);
  });

  it('shows the whole name of a file outside the working directory', () => {
    const { file } = error.source;
    assert.equal(formatErrors([error], '/srv/web').split(':')[0], file);
    assert.equal(formatErrors([error], file).split(':')[0], '.');
  });

  const key = { key: 'api_key', value: 'hunter2' };
  for (const [what, given] of [
    ['a hash', { records: [], users: [{ name: 'ann', password_hash: 'hunter2' }] }],
    ['a descriptor', { records: [], limits: [{ domain: 'd', descriptors: [key, key] }] }],
  ] as const)
    it(`shows no secret in ${what}`, () => {
      const { errors } = configurationFrom(given);
      assert.equal(errors.length, 1);
      assert.doesNotMatch(formatErrors(errors, '/srv/app'), /hunter2/);
    });
});
