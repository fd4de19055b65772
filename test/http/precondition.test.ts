/** Lists of entity tags in `If-Match` and `If-None-Match`: which tags they match, and how they are parsed. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import type { Context } from 'koa';
import { preconditionOf } from '#http';
import { digestTag, matchFails, noneMatchFails, parseEntityTags } from '../../src/http/precondition.ts';

const contextOf = (ifMatch: string | undefined) =>
  ({ req: { headers: { 'if-match': ifMatch } } }) as unknown as Context;

describe('a list of entity tags', () => {
  /** Asserts whether the list matches the tag "a" in a strong and in a weak comparison. */
  function check(list: string, strong: boolean, weak = strong) {
    it(`${JSON.stringify(list)}: "a" ${strong ? 'matches' : 'does not match'} strongly, ${weak ? 'matches' : 'does not match'} weakly`, () => {
      const precondition = preconditionOf(contextOf(list));
      assert.equal(precondition === '*' || precondition.includes('a'), strong);
      assert.equal(matchFails(list, '"a"'), !strong);
      for (const tag of ['"a"', 'W/"a"']) assert.equal(noneMatchFails(list, tag), weak, tag);
    });
  }

  check('"a"', true);
  check('*', true);
  check(' * ', true);
  check('"b", "a"', true);
  check('"b" ,"c",, "a" ,', true);
  check('W/"b", "a"', true);
  check('W/"a"', false, true);
  check('W/"b", W/"a"', false, true);
  for (const list of ['"b"', '"A"', '"aa"', 'w/"a"', '"a,b"', '"*"', 'a', '"a', '"a" "b"', '"a", b', '"a", *', '', ','])
    check(list, false);

  it('must be sent with a change', () => {
    assert.throws(() => preconditionOf(contextOf(undefined)), { slug: 'precondition-required', status: 428 });
  });

  it('is parsed as it was written', () => {
    const opaque = fc.stringMatching(/^[!#-~\x80-\xff]*$/);
    const tag = fc.record({ isWeak: fc.boolean(), opaque }, { noNullPrototype: true });
    fc.assert(
      fc.property(fc.array(tag), fc.constantFrom(',', ', ', ' ,\t', ',,'), (tags, comma) => {
        const text = tags.map((one) => `${one.isWeak ? 'W/' : ''}"${one.opaque}"`).join(comma);
        assert.deepEqual(parseEntityTags(text), tags);
      }),
    );
  });

  it('is parsed in linear time, whatever the text', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom('"', ',', ' ', 'W/', 'a', '\t') }), (text) => {
        assert.ok(Array.isArray(parseEntityTags(text)));
      }),
    );
    assert.deepEqual(parseEntityTags(`${', '.repeat(8000)}x`), []);
  });
});

describe('digestTag', () => {
  it('returns a strong tag that depends only on the text', () => {
    assert.match(digestTag('a'), /^"[\w-]{22}"$/);
    assert.equal(digestTag('é'), digestTag('é'));
    assert.notEqual(digestTag('a'), digestTag('b'));
  });

  it('begins with the version, and differs between representations of one version', () => {
    assert.match(digestTag('a', 7), /^"7-[\da-z]{1,7}"$/);
    assert.equal(digestTag('é', 7), digestTag('é', 7));
    assert.notEqual(digestTag('a', 7), digestTag('b', 7));
    assert.notEqual(digestTag('a', 7), digestTag('a', 8));
  });
});
