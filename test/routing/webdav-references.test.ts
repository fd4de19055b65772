/** Parsing and replacing the references in `Destination` and `If`. */
import assert from 'node:assert/strict';
import { editReferences, readReference } from '#routing';

describe('reading a reference', () => {
  const base = { hosts: ['Front.example', 'public.example:8443'], path: '/travel' };

  function check(text: string, expected: ReturnType<typeof readReference> | string, path = base.path) {
    it(`parses ${JSON.stringify(text)} as ${JSON.stringify(expected)}`, () => {
      const found = readReference(text, { ...base, path });
      if (typeof found === 'string' || typeof expected !== 'string') assert.deepEqual(found, expected);
      else assert.equal(found.path + found.search, expected);
    });
  }

  check('http://front.example/travel/dav/a?b', { path: '/dav/a', search: '?b', isAbsolute: true });
  check('/travel/dav/a', { path: '/dav/a', search: '', isAbsolute: false });
  check('HTTPS://FRONT.example:443/travel/a', '/a');
  check('http://front.example:80/travel/a', '/a');
  check('https://public.example:8443/travel/a', '/a');
  check('http://front.example/travel', '/');
  check('http://front.example', '/', '');
  check('http://front.example/a/%62%2f', '/a/b%2F', '');
  check('http://front.example//a', 'ambiguous');
  check('http://front.example/travels/a', 'elsewhere');
  check('http://front.example', 'elsewhere');
  check('/dav/a', 'elsewhere');
  check('http://front.example:81/travel/a', 'elsewhere');
  check('http://public.example/travel/a', 'elsewhere');
  check('http://front.example@evil.example/travel/a', 'elsewhere');
  check('http://a@front.example/travel/a', 'elsewhere');
  check('http://front.example\\.evil.example/travel/a', 'elsewhere');
  check('http:///travel/a', 'elsewhere');
  check('http://[/travel/a', 'elsewhere');
  check('ftp://front.example/travel/a', 'elsewhere');
  check('file:/travel/a', 'elsewhere');
  check('//front.example/travel/a', 'ambiguous');
  check('http:/travel/a', 'ambiguous');
  check('travel/a', 'ambiguous');
  check('', 'ambiguous');
  check('?a', 'ambiguous');
  check('/travel/a#b', 'ambiguous');
  check('/travel/a?b c', 'ambiguous');
  for (const path of ['/a/../b', '/a/%2e%2e/b', '/a/%252e%252e/b', '/a\\b', '/a\0', '/a%', '/a, /travel/b', '/..;/b'])
    for (const start of ['', 'http://front.example']) check(`${start}/travel${path}`, 'ambiguous');
});

describe('editing references', () => {
  const edited = (method: string, headers: Readonly<Record<string, string>>) =>
    editReferences(method, headers, (reference) => reference.toUpperCase());

  const checkIf = (value: string, expected: string) =>
    it(`turns If: ${value} into ${expected}`, () => assert.deepEqual(edited('PUT', { if: value }), { if: expected }));

  checkIf('(<urn:uuid:a> ["b"])', '(<urn:uuid:a> ["b"])');
  checkIf('</a> (<urn:uuid:b>) (Not <urn:c> [W/"d"])', '</A> (<urn:uuid:b>) (Not <urn:c> [W/"d"])');
  checkIf('<http://f/a>(["b) <c>"])<d> (<e>)', '<HTTP://F/A>(["b) <c>"])<D> (<e>)');
  checkIf('</a> (["b', '</A> (["b');
  checkIf('((<a> </b>) </c>', '((<a> </b>) </C>');
  checkIf('</a </b> <', '</a </B> <');

  it('replaces Destination for COPY and MOVE only', () => {
    for (const method of ['COPY', 'MOVE']) {
      assert.deepEqual(edited(method, { destination: ' /a ' }), { destination: '/A' });
      assert.deepEqual(edited(method, { destination: '/a', if: '</b>' }), { destination: '/A', if: '</B>' });
    }
    assert.deepEqual(edited('POST', { destination: '/a' }), {});
    assert.equal(edited('MOVE', { host: 'a' }), undefined);
  });

  it('takes linear time for unclosed brackets', () => {
    for (const text of ['(', '<', '"', '("', '<a', '(<"'])
      editReferences('PUT', { if: text.repeat(1_000_000 / text.length) }, () => assert.fail('there is no tag'));
  });
});
