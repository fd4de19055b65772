/** Tests that a prefix_regex that cannot match any path is rejected, because it would not protect anything. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { compilePattern, configurationFrom } from '#config';
import { untyped } from '../../support/untyped.ts';

/** Returns the error of a Mapping with this pattern. */
function faultOf(prefix: string) {
  const mapping = { apiVersion: 'gateway/v1', kind: 'Mapping', name: 'one', service: 'hotel' };
  const { errors } = configurationFrom(untyped({ records: [{ ...mapping, prefix, prefix_regex: true }] }));
  return errors.length === 0 ? undefined : errors.map(({ message, remedy }) => `${message}: ${remedy}`).join();
}

describe('a prefix_regex', () => {
  for (const pattern of ['foo', '^foo', '^$', '', '$', '(foo|bar)/.*', '(?:v1)', '[a-z0-9_]+/x', '\\.php', '(?i)^foo'])
    it(`cannot be ${JSON.stringify(pattern)} because it matches no path`, () =>
      assert.match(faultOf(pattern) ?? '', /matches no path: a path starts with "\/": Write it as "/));

  it('cannot contain percent-encoding in lower case, because no request path does', () => {
    const capitals = 'percent-encoding is always in upper case';
    assert.equal(
      faultOf('/caf%c3%a9(/.*)?'),
      `prefix "/caf%c3%a9(/.*)?" matches no path: ${capitals}: Write it as "/caf%C3%A9(/.*)?".`,
    );
    for (const pattern of ['(?i)/caf%c3%a9', '/caf%C3%A9', '/a%3c*', '/caf%c3%a9|/cafe', '/[%c3]', '/%41'])
      assert.equal(faultOf(pattern), undefined, pattern);
  });

  for (const pattern of [
    '.*',
    '.',
    'foo|/bar',
    '(foo|/bar)',
    'a*/b',
    '[a-z]?/b',
    '(a|b)?/x',
    '[+-9]x',
    '[^a]+',
    '\\x2f',
    // An empty group of flags is nothing, so that the repetition is that of the letter.
    'a(?){0}.',
    '/%3c(?){0}C',
  ])
    it(`can be ${JSON.stringify(pattern)}`, () => assert.equal(faultOf(pattern), undefined));

  it('is never rejected if it matches a path, and a suggested pattern is valid', () => {
    const piece = fc.constantFrom(...'a / . * ? + | ( ) [a-z] [+-9] [^a] ^ $ \\d \\. (?i) (?: {0} {1} a|b'.split(' '));
    const pattern = fc.array(piece, { maxLength: 7 }).map((pieces) => pieces.join(''));
    const path = fc.string({ unit: fc.constantFrom('a', 'b', '1', '.', '/'), maxLength: 4 }).map((text) => `/${text}`);
    fc.assert(
      fc.property(pattern, fc.array(path, { minLength: 20 }), (text, paths) => {
        const [, remedy] = /matches no path.*Write it as (".*")\.$/.exec(faultOf(text) ?? '') ?? [];
        if (remedy === undefined) return;
        const compiled = compilePattern(text);
        assert.ok(compiled.ok && !['/', ...paths].some(compiled.pattern.matches));
        assert.doesNotMatch(faultOf(JSON.parse(remedy)) ?? '', /matches no path/);
      }),
      { numRuns: 1000 },
    );
  });
});
