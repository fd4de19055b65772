/** What a rule requires of hosts, headers and query parameters. table.test.ts compares methods and the common cases with a model; verdicts.test.ts names the reasons. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import type { RequestAttributes, Rule } from '#routing';
import { createQuery } from '../../src/routing/conditions.ts';
import { factsOf, ruleOf, tableOf } from './rules.ts';

const exact = (value: string) => ({ kind: 'exact' as const, value });
const present = { kind: 'present' as const };

function check(title: string, fields: Partial<Rule>, asked: Partial<RequestAttributes>, expected: boolean) {
  it(`${expected ? 'takes' : 'refuses'} ${title}`, () =>
    assert.equal(tableOf([ruleOf(fields)]).match(factsOf(asked)) !== undefined, expected));
}

describe('a host', () => {
  check('the bare prefix', { host: { kind: 'prefix', value: 'api' } }, { host: 'api' }, false);
  check('the bare suffix', { host: { kind: 'suffix', value: '.example' } }, { host: '.example' }, false);
});

describe('headers', () => {
  const headers = [
    { name: 'x-a', match: exact('1') },
    { name: 'x-b', match: present },
  ];
  check('a request with all of them', { headers }, { headers: { 'x-a': '1', 'x-b': '' } }, true);
  check('another value', { headers }, { headers: { 'x-a': '1, 1', 'x-b': '' } }, false);
  const cookies = [{ name: 'set-cookie', match: exact('a, b') }];
  check('a list as one text', { headers: cookies }, { headers: { 'set-cookie': ['a', 'b'] } }, true);
  for (const name of ['constructor', '__proto__', 'toString'])
    check(`a request without the header ${name}`, { headers: [{ name, match: present }] }, {}, false);
});

describe('query parameters', () => {
  const asks = (name: string, value: string) => ({ queryParameters: [{ name, match: exact(value) }] });
  check('the first of two values', asks('q', '1'), { search: '?q=1&q=2' }, true);
  check('the second of two values', asks('q', '2'), { search: '?q=1&q=2' }, false);
  check('an encoded value', asks('q', 'é /'), { search: '?q=%C3%A9+%2F' }, true);
  check('a value in UTF-8 that is not encoded', asks('q', 'é'), { search: '?q=\u00c3\u00a9' }, true);
  check('a value that is not UTF-8, with the sign for it', asks('q', '\ufffd'), { search: '?q=%C3' }, true);
  check('an encoded name', asks('admin', '1'), { search: '?%61dmin=1' }, true);
  check('an empty value', asks('q', ''), { search: '?q' }, true);
  check('a value that holds an equals sign', asks('q', 'a=b'), { search: '?q=a=b' }, true);
  check('a value with a broken escape literally', asks('q', '%zz'), { search: '?q=%zz' }, true);

  it('are read as WHATWG reads a form', () => {
    const piece = fc.constantFrom(...'ab=&+%?', '%61', '%3D', '%26', '%zz', '%C3', '%C3%A9', '__proto__');
    const names = ['a', 'b', 'ab', '', '=', '__proto__', ' ', 'é'];
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 10 }), (pieces) => {
        const search = `?${pieces.join('')}`;
        const query = createQuery(search, new Set(names));
        const whatwg = new URLSearchParams(search);
        // A form skips an empty pair, and here it is a parameter without a name; no record can name that.
        for (const name of names.filter(Boolean)) assert.equal(query.first(name) ?? null, whatwg.get(name), name);
      }),
      { numRuns: 1000 },
    );
  });

  it('are kept only when a rule names them', () => {
    assert.equal(createQuery('?a=1&b=2', new Set(['a'])).first('b'), undefined);
  });
});
