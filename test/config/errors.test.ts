/** A slip of the pen is recognised; another word is not. */
import assert from 'node:assert/strict';
import * as fc from 'fast-check';
import { didYouMean, editDistance, suggestion } from '../../src/config/errors.ts';

const known = ['prefix', 'rewrite', 'service', 'timeout_ms', 'labels', 'auth_service'];

function check(mistyped: string, expected: string | undefined): void {
  it(`takes ${JSON.stringify(mistyped)} for ${expected ?? 'nothing known'}`, () => {
    assert.equal(suggestion(mistyped, known), expected);
  });
}

describe('suggestion', () => {
  check('prefx', 'prefix');
  check('perfix', 'prefix');
  check('Prefix', 'prefix');
  check('rewrites', 'rewrite');
  check('timeout', 'timeout_ms');
  check('serivce', 'service');
  check('colour', undefined);
  check('ms', undefined);
  check('', undefined);

  it('takes the nearest when several are near', () => {
    assert.equal(suggestion('labeels', ['label', 'table', 'labels']), 'labels');
    assert.equal(suggestion('service', ['auth_service', 'services']), 'services');
  });

  it('ends a sentence, or leaves it as it is', () => {
    assert.equal(didYouMean('prefx', known), ', did you mean "prefix"?');
    assert.equal(didYouMean('colour', known), '');
  });
});

describe('editDistance', () => {
  it('counts letters put in, left out, replaced and swapped', () => {
    assert.equal(editDistance('port', 'ports'), 1);
    assert.equal(editDistance('port', 'prt'), 1);
    assert.equal(editDistance('port', 'part'), 1);
    assert.equal(editDistance('port', 'prot'), 1);
    assert.equal(editDistance('', 'port'), 4);
    assert.equal(editDistance('kitten', 'sitting'), 3);
  });

  it('is the same both ways, nothing to oneself, and never more than the longer word', () => {
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
