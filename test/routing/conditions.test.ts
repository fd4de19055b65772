/** Edge cases of host, header and query conditions. table.test.ts compares the rest with a model. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import type { RequestAttributes, Rule } from '#routing';
import { createQuery } from '../../src/routing/conditions.ts';
import { attributesOf, ruleOf, tableOf } from './rules.ts';

const exact = (value: string) => ({ kind: 'exact' as const, value });
const present = { kind: 'present' as const };

function check(title: string, fields: Partial<Rule>, request: Partial<RequestAttributes>, expected: boolean) {
  it(`${expected ? 'matches' : 'does not match'} ${title}`, () =>
    assert.equal(tableOf([ruleOf(fields)]).match(attributesOf(request)) !== undefined, expected));
}

describe('a host condition', () => {
  check('the prefix alone', { host: { kind: 'prefix', value: 'api' } }, { host: 'api' }, false);
  check('the suffix alone', { host: { kind: 'suffix', value: '.example' } }, { host: '.example' }, false);
});

describe('header conditions', () => {
  const headers = [
    { name: 'x-a', match: exact('1') },
    { name: 'x-b', match: present },
  ];
  check('a request with all headers', { headers }, { headers: { 'x-a': '1', 'x-b': '' } }, true);
  check('another value', { headers }, { headers: { 'x-a': '1, 1', 'x-b': '' } }, false);
  const utf8 = (text: string) => Buffer.from(text).toString('latin1');
  const named = [{ name: 'x-a', match: { kind: 'exact', value: 'müller' } }] as const;
  check('a value in UTF-8', { headers: named }, { headers: { 'x-a': utf8('müller') } }, true);
  check('a value in Latin-1', { headers: named }, { headers: { 'x-a': 'm\xfcller' } }, true);
  check('another value in UTF-8', { headers: named }, { headers: { 'x-a': utf8('möller') } }, false);
  const oneLetter = [{ name: 'x-a', match: { kind: 'regex', pattern: 'm.ller' } }] as const;
  check(
    'a pattern of letters, whatever bytes they have',
    { headers: oneLetter },
    { headers: { 'x-a': utf8('m文ller') } },
    true,
  );
  const cookies = [{ name: 'set-cookie', match: exact('a, b') }];
  check('a list joined with commas', { headers: cookies }, { headers: { 'set-cookie': ['a', 'b'] } }, true);
  for (const name of ['constructor', '__proto__', 'toString'])
    check(`a request without the header ${name}`, { headers: [{ name, match: present }] }, {}, false);
});

describe('query conditions', () => {
  const asks = (name: string, value: string) => ({ queryParameters: [{ name, match: exact(value) }] });
  check('the first of two values', asks('q', '1'), { search: '?q=1&q=2' }, true);
  check('the second of two values', asks('q', '2'), { search: '?q=1&q=2' }, false);
  check('a value after other parameters', asks('q', '1'), { search: '?a=1&q=1' }, true);
  check('an encoded value', asks('q', 'é /'), { search: '?q=%C3%A9+%2F' }, true);
  check('unescaped UTF-8', asks('q', 'é'), { search: '?q=\u00c3\u00a9' }, true);
  check('invalid UTF-8 as U+FFFD', asks('q', '\ufffd'), { search: '?q=%C3' }, true);
  check('an encoded name', asks('admin', '1'), { search: '?%61dmin=1' }, true);
  check('an empty value', asks('q', ''), { search: '?q' }, true);
  check('a value with an equals sign', asks('q', 'a=b'), { search: '?q=a=b' }, true);
  check('a broken escape literally', asks('q', '%zz'), { search: '?q=%zz' }, true);

  it('parse the query like URLSearchParams', () => {
    const piece = fc.constantFrom(...'ab=&+%?', '%61', '%3D', '%26', '%zz', '%C3', '%C3%A9', '__proto__');
    const names = ['a', 'b', 'ab', '', '=', '__proto__', ' ', 'é'];
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 10 }), (pieces) => {
        const search = `?${pieces.join('')}`;
        const query = createQuery(search, new Set(names));
        const whatwg = new URLSearchParams(search);
        // URLSearchParams skips an empty pair. Here it is a parameter with an empty name, which no record can contain.
        for (const name of names.filter(Boolean)) assert.equal(query.first(name) ?? null, whatwg.get(name), name);
      }),
      { numRuns: 1000 },
    );
  });

  it('retain only the parameters that a rule reads', () => {
    assert.equal(createQuery('?a=1&b=2', new Set(['a'])).first('b'), undefined);
  });
});
