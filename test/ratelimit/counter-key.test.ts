/** Names of counters: short, and never shared. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { bounded, sized } from '../../src/ratelimit/counter-key.ts';

const lists = fc.array(fc.string({ unit: fc.constantFrom('1', ':', '_', 'a', '2', '|', '*') }), { maxLength: 5 });

describe('counter keys', () => {
  it('written one behind the other, differ as soon as the texts do', () => {
    fc.assert(
      fc.property(lists, lists, (left, right) => {
        const same = JSON.stringify(left) === JSON.stringify(right);
        assert.equal(left.map(sized).join('') === right.map(sized).join(''), same);
      }),
    );
  });

  it('stay as they are up to 128 characters', () => {
    assert.equal(bounded('7:'.padEnd(128, 'x')), '7:'.padEnd(128, 'x'));
  });

  it('are digests above, of the same length however long the text', () => {
    const digest = bounded('7:'.padEnd(129, 'x'));
    assert.match(digest, /^#[\w+/=]{44}$/);
    assert.equal(bounded('7:'.padEnd(16_384, 'x')).length, digest.length);
    assert.notEqual(bounded('7:'.padEnd(16_384, 'x')), digest);
  });

  it('tell apart texts that only UTF-8 confounds', () => {
    assert.notEqual(bounded(`${'x'.repeat(200)}\ud800`), bounded(`${'x'.repeat(200)}\ud801`));
  });
});
