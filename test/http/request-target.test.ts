import assert from 'node:assert/strict';
import fc from 'fast-check';
import { pathOf } from '#http';
import { originForm } from '../../src/http/paths.ts';

describe('pathOf', () => {
  function check(target: string, expected: string) {
    it(`finds ${expected} in ${target}`, () => {
      assert.equal(pathOf(target), expected);
    });
  }

  check('/', '/');
  check('/a/b', '/a/b');
  check('/a?b', '/a');
  check('/a?b?c#d', '/a');
  check('/a#b?c', '/a');
  check('//evil.example/a', '//evil.example/a');
  check('http://desk.test/a?b', '/a');
  check('HTTPS://desk.test:8080/a', '/a');
  check('http://user@desk.test/a', '/a');
  check('http://desk.test', '/');
  check('http://desk.test?b', '/');
  check('http://[/a', '/a');
  check('*', '*');
});

describe('originForm', () => {
  function check(target: string, expected: string) {
    it(`takes ${target} for ${expected}`, () => {
      assert.equal(originForm(target), expected);
    });
  }

  check('/a?b', '/a?b');
  check('http://desk.test/a?b', '/a?b');
  check('http://desk.test?b', '/?b');
  check('http://desk.test#b', '/#b');
  check('//desk.test/a', '//desk.test/a');
  check('*', '*');

  it('gives the same again, begins with the path and never throws', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.webUrl(), fc.webPath()), (target) => {
        const origin = originForm(target);
        assert.ok(origin.startsWith(pathOf(target)));
        if (origin.startsWith('/')) assert.equal(originForm(origin), origin);
      }),
    );
  });
});
