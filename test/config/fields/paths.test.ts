/** Prefixes that can match, and those that never could; the wording of each refusal is in the golden files. */
import assert from 'node:assert/strict';
import * as fc from 'fast-check';
import { prefixFault, rewriteFault, withoutTrailingSlash } from '../../../src/config/fields/paths.ts';

describe('prefixFault', () => {
  const accepted = ['/', '/v1/hotels', '/v1/hotels/', '/a.b', '/...', '/.well-known', '/caf%C3%A9', '/a%20b', '/a%2Fb'];
  for (const path of [...accepted, "/a;b=1,2:@!$&'()*+"])
    it(`accepts ${path}`, () => assert.equal(prefixFault(path), undefined));

  const dots = ['/.', '/..', '/a/./b', '/a/..', '/%2e', '/.%2E/a'];
  const encoded = ['/%', '/%4', '/%zz', '/%41', '/%7e'];
  for (const path of [
    ...['', 'v1', '//', '/a//b'],
    ...dots,
    ...encoded,
    '/a?b',
    '/a#b',
    '/a\\b',
    '/a b',
    '/é',
    '/a\n',
    '/\0',
  ])
    it(`refuses ${JSON.stringify(path)}`, () => assert.notEqual(prefixFault(path), undefined));

  it('gives a remedy that is accepted, wherever it gives a path', () => {
    void fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom('/', 'a', '%61', '.') }), (path) => {
        const fault = prefixFault(path);
        const given = /^Write it as (".*")\.$/.exec(fault?.remedy ?? '')?.[1];
        if (given !== undefined) assert.notEqual(prefixFault(JSON.parse(given))?.message, fault?.message);
      }),
    );
  });
});

describe('rewriteFault', () => {
  it('lets the empty rewrite through and holds the others to the rules of a prefix', () => {
    assert.equal(rewriteFault(''), undefined);
    assert.equal(rewriteFault('/'), undefined);
    assert.equal(rewriteFault('hotels')?.message, '"hotels" does not start with "/"');
  });
});

describe('withoutTrailingSlash', () => {
  it('takes /v1/hotels/ for /v1/hotels and leaves / and the empty path', () => {
    assert.deepEqual(['/v1/hotels/', '/v1/hotels', '/', ''].map(withoutTrailingSlash), [
      '/v1/hotels',
      '/v1/hotels',
      '/',
      '',
    ]);
  });
});
