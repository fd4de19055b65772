/** `If-Match`: lists of tags, compared strongly. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import type { Context } from 'koa';
import { preconditionOf } from '#http';
import { parseEntityTags } from '../../src/http/precondition.ts';

const contextOf = (ifMatch: string | undefined) =>
  ({ req: { headers: { 'if-match': ifMatch } } }) as unknown as Context;

describe('preconditionOf', () => {
  function check(ifMatch: string, expected: boolean) {
    it(`${expected ? 'holds' : 'fails'} for the tag "a" and If-Match: ${ifMatch}`, () => {
      const precondition = preconditionOf(contextOf(ifMatch));
      assert.equal(precondition === '*' || precondition.includes('a'), expected);
    });
  }

  check('"a"', true);
  check('*', true);
  check(' * ', true);
  check('"b", "a"', true);
  check('"b" ,"c",, "a" ,', true);
  check('W/"b", "a"', true);
  check('"b"', false);
  check('W/"a"', false);
  check('w/"a"', false);
  check('"a,b"', false);
  check('"*"', false);
  check('a', false);
  check('"a', false);
  check('"a" "b"', false);
  check('"a", b', false);
  check('', false);
  check(',', false);
  check('"a", *', false);

  it('is required', () => {
    assert.throws(() => preconditionOf(contextOf(undefined)), { slug: 'precondition-required', status: 428 });
  });
});

describe('parseEntityTags', () => {
  const tag = fc.record(
    { isWeak: fc.boolean(), opaque: fc.stringMatching(/^[!#-~\x80-\xff]*$/) },
    { noNullPrototype: true },
  );

  it('reads every list that is one', () => {
    fc.assert(
      fc.property(fc.array(tag), fc.constantFrom(',', ', ', ' ,\t', ',,'), (tags, comma) => {
        const text = tags.map(({ isWeak, opaque }) => `${isWeak ? 'W/' : ''}"${opaque}"`).join(comma);
        assert.deepEqual(parseEntityTags(text), tags);
      }),
    );
  });

  it('ends in time, whatever a client sends', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom('"', ',', ' ', 'W/', 'a', '\t') }), (text) => {
        assert.ok(Array.isArray(parseEntityTags(text)));
      }),
    );
    assert.deepEqual(parseEntityTags(`${', '.repeat(8000)}x`), []);
  });
});
