import assert from 'node:assert/strict';
import fc from 'fast-check';
import { parse } from 'yaml';
import { builtInFormatters } from '#http';
import { htmlFormatter, jsonFormatter, problemJsonFormatter, yamlFormatter } from '../../src/http/representations.ts';

describe('built-in formatters', () => {
  it('have a type in lower case without parameters, which their Content-Type begins with, and a tag of their own', () => {
    for (const { type, contentType, tag } of builtInFormatters) {
      assert.match(type, /^[a-z]+\/[a-z+]+$/);
      assert.equal(contentType.split(';')[0], type);
      assert.match(tag, /^[a-z]+$/);
    }
    assert.equal(new Set(builtInFormatters.map(({ tag }) => tag)).size, builtInFormatters.length);
    assert.equal(new Set(builtInFormatters.map(({ type }) => type)).size, builtInFormatters.length);
  });

  it('put JSON first and leave problem+json to errors', () => {
    assert.equal(builtInFormatters[0], jsonFormatter);
    assert.deepEqual(
      builtInFormatters.filter(({ errorsOnly }) => errorsOnly === true),
      [problemJsonFormatter],
    );
  });

  it('tell any plain value in YAML as in JSON', () => {
    fc.assert(
      fc.property(fc.jsonValue({ noUnicodeString: false }), (value) => {
        const json = jsonFormatter.format(value, '');
        assert.deepEqual(parse(yamlFormatter.format(JSON.parse(json), '')), JSON.parse(json));
      }),
    );
  });

  it('write out twice what stands twice in a value, since not every reader of YAML knows aliases', () => {
    const user = { name: 'demo' };
    assert.equal(yamlFormatter.format({ from: user, to: user }, ''), 'from:\n  name: demo\nto:\n  name: demo\n');
  });

  it('tell an error as RFC 9457 wants it, with all that the plain body has', () => {
    const errors = [{ pointer: '#/query/limit', detail: 'is not a number' }];
    const body = { code: 404, message: '404: Not Found', detail: 'There is no such hotel.', errors };
    assert.deepEqual(JSON.parse(problemJsonFormatter.format(body, '')), {
      type: 'about:blank',
      title: 'Not Found',
      status: 404,
      ...body,
    });
  });

  it('tell an error that has a page by that page and its title', () => {
    const body = { code: 404, message: '404: Not Found', info_url: 'https://desk.test/problems/not-found' };
    const told = JSON.parse(problemJsonFormatter.format(body, 'Not found'));
    assert.deepEqual(told, { type: body.info_url, title: 'Not found', status: 404, ...body });
  });

  it('tell a value as a page under its title', () => {
    const page = htmlFormatter.format({ name: 'Krone' }, 'Hotel');
    assert.ok(page.includes('<title>Hotel</title>'));
    assert.ok(page.includes('<dt>name</dt><dd>Krone</dd>'));
  });
});
