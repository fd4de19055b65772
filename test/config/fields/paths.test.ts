/** Tests which prefixes and rewrites are valid. The golden files cover the wording of the errors. */
import assert from 'node:assert/strict';
import * as fc from 'fast-check';
import { prefixFault, rewriteFault, withoutTrailingSlash } from '../../../src/config/fields/paths.ts';

describe('prefixFault', () => {
  const accepted = `/ /v1/hotels /v1/hotels/ /a.b /... /.well-known /caf%C3%A9 /a%20b /a%2Fb /a;b=1,2:@!$&'()*+`;
  const rejected = 'v1 // /a//b /. /.. /a/./b /a/.. /%2e /.%2E/a /% /%4 /%zz /%41 /%7e /a?b /a#b /a\\b /é';
  for (const path of accepted.split(' ')) it(`accepts ${path}`, () => assert.equal(prefixFault(path), undefined));
  for (const path of ['', '/a b', '/a\n', '/\0', ...rejected.split(' ')])
    it(`rejects ${JSON.stringify(path)}`, () => assert.notEqual(prefixFault(path), undefined));

  it('suggests only paths that do not have the same fault', () => {
    void fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom('/', 'a', '%61', '.') }), (path) => {
        const fault = prefixFault(path);
        const given = /^Write it as (".*")\.$/.exec(fault?.remedy ?? '')?.[1];
        if (given !== undefined) assert.notEqual(prefixFault(JSON.parse(given))?.message, fault?.message);
      }),
    );
  });
});

it('rewriteFault accepts the empty string and otherwise applies the rules of prefixes', () => {
  assert.deepEqual([rewriteFault(''), rewriteFault('/')], [undefined, undefined]);
  assert.equal(rewriteFault('hotels')?.message, '"hotels" does not start with "/"');
});

it('withoutTrailingSlash removes a trailing slash except from /', () => {
  const paths = ['/v1/hotels/', '/v1/hotels', '/', ''].map(withoutTrailingSlash);
  assert.deepEqual(paths, ['/v1/hotels', '/v1/hotels', '/', '']);
});
