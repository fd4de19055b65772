import assert from 'node:assert/strict';
import fc from 'fast-check';
import { parse } from 'yaml';
import {
  builtInFormatters,
  createRepresentations,
  type Formatter,
  htmlFormatter,
  jsonFormatter,
  Problem,
  withHtmlPage,
  yamlFormatter,
} from '#http';
import { problemJsonFormatter } from '../../src/http/representations.ts';

const json = 'application/json';
const problemJson = 'application/problem+json';
const yaml = 'application/yaml';
const html = 'text/html';

describe('choose', () => {
  const { choose } = createRepresentations();

  function check(accept: string | undefined, expected: string) {
    it(`is ${expected} for Accept: ${accept ?? '(absent)'}`, () => {
      assert.equal(choose(accept).type, expected);
      assert.equal(choose(accept).type, expected, 'the same when it is remembered');
    });
  }

  const jsonAccepts = [undefined, '', '   ', '*/*', 'application/*', 'application/json', 'application/JSON'];
  const withParameters = [
    'application/json; charset=utf-8',
    'application/json;charset="utf-8"',
    'application/json;version=2',
  ];
  const malformed = ['garbage', 'application/json;q=abc', ';;;,,,', 'application', '/'];
  for (const accept of [...jsonAccepts, ...withParameters, ...malformed]) check(accept, json);
  check('application/json;q=0.5;charset=utf-8', json);
  check('application/yaml', yaml);
  check('text/html', html);
  check('text/*', html);
  check('text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8', html);
  check('text/html;q=0.5, application/yaml;q=0.9', yaml);
  check('text/html;q=0.5, application/json', json);
  check('*/*, application/json;q=0', yaml);
  check('image/png, */*;q=0.1', json);
  check('application/problem+json, application/json', json);
  // Java's HttpURLConnection
  check('text/plain, image/gif, image/jpeg, *; q=.2, */*; q=.2', json);
  check('image/png, application/yaml;q=0.33333', yaml);
  check('application/yaml ; Q=0.5', yaml);
  check('application/yaml, garbage', yaml);

  function checkRefused(accept: string) {
    it(`refuses Accept: ${accept} and lists the types on offer`, () => {
      assert.throws(
        () => choose(accept),
        (thrown) =>
          thrown instanceof Problem &&
          thrown.slug === 'not-acceptable' &&
          thrown.detail === 'This resource comes as application/json, application/yaml, text/html.',
      );
    });
  }

  checkRefused('image/png');
  checkRefused('application/problem+json');
  checkRefused('application/vnd.api+json');
  checkRefused('*/*;q=0');
  checkRefused('application/json;q=0');

  it('finds JSON anywhere in the list, with any parameters', () => {
    const type = fc.stringMatching(/^[a-z]{1,5}\/[a-z]{1,5}$/);
    const parameters = fc.array(fc.stringMatching(/^; ?[a-pr-z][a-z]{0,6}=[a-z\d-]{1,7}$/), { maxLength: 3 });
    fc.assert(
      fc.property(fc.array(type), parameters, fc.array(type), (before, some, after) => {
        fc.pre(![...before, ...after].includes(html));
        assert.equal(choose([...before, `application/json${some.join('')}`, ...after].join(',')).type, json);
      }),
    );
  });

  it('returns a formatter or throws not-acceptable, for any text', () => {
    const ranges = fc.constantFrom(
      json,
      yaml,
      html,
      '*/*',
      'image/*',
      ';q=0',
      ';q=1',
      ';q=0.5',
      ',',
      ', ',
      '"',
      'q',
      '=',
    );
    const header = fc.oneof(
      fc.string(),
      fc.array(ranges).map((parts) => parts.join('')),
    );
    fc.assert(
      fc.property(header, (accept) => {
        try {
          assert.ok(builtInFormatters.includes(choose(accept)));
        } catch (thrown) {
          assert.ok(thrown instanceof Problem && thrown.slug === 'not-acceptable');
        }
      }),
    );
  });
});

describe('choices that are remembered', () => {
  /** A formatter that counts how often negotiation asks for its type. */
  function counted() {
    let asked = 0;
    const formatter: Formatter = {
      get type() {
        asked += 1;
        return 'text/csv';
      },
      contentType: 'text/csv',
      tag: 'csv',
      format: () => '',
    };
    const { choose } = createRepresentations([formatter]);
    return (accept: string) => {
      const before = asked;
      choose(accept);
      return asked > before;
    };
  }

  it('negotiate once for the same header', () => {
    const negotiates = counted();
    assert.deepEqual([negotiates('text/csv'), negotiates('text/csv'), negotiates('text/*')], [true, false, true]);
  });

  it('are forgotten, the oldest first, when clients send many headers', () => {
    const negotiates = counted();
    negotiates('text/csv');
    for (let index = 0; index < 1000; index += 1) negotiates(`text/csv, a/b${index}`);
    assert.deepEqual([negotiates('text/csv'), negotiates('text/csv, a/b999')], [true, false]);
  });

  it('leave out headers of unusual length', () => {
    const negotiates = counted();
    const long = `text/csv${', a/b'.repeat(500)}`;
    assert.deepEqual([negotiates(long), negotiates(long)], [true, true]);
  });
});

describe('chooseForError', () => {
  const { chooseForError } = createRepresentations();

  function check(accept: string | undefined, expected: string) {
    it(`is ${expected} for Accept: ${accept ?? '(absent)'}`, () => {
      assert.equal(chooseForError(accept).type, expected);
    });
  }

  for (const accept of [undefined, '', '*/*', 'application/*', 'application/json']) check(accept, json);
  check('application/problem+json', problemJson);
  check('application/problem+json, application/json', problemJson);
  check('application/json, application/problem+json', problemJson);
  check('application/json, application/problem+json;q=0', json);
  check('application/problem+json, */*', problemJson);
  check('*/*, application/problem+json', problemJson);
  check('application/yaml', yaml);
  check('text/html', html);
  check('image/png', json);
  check('application/json;q=0', json);
  check('*/*;q=0', json);

  it('never refuses', () => {
    fc.assert(
      fc.property(fc.string(), (accept) => {
        assert.ok(builtInFormatters.includes(chooseForError(accept)));
      }),
    );
  });
});

describe('createRepresentations', () => {
  const csv: Formatter = { type: 'text/csv', contentType: 'text/csv', tag: 'csv', format: () => '' };

  it('offers the types of normal responses in the order of preference', () => {
    assert.deepEqual(createRepresentations().types, [json, yaml, html]);
    assert.deepEqual(createRepresentations().errorTypes, [json, 'application/problem+json', yaml, html]);
  });

  it('takes formatters of your own, the first being the default', () => {
    const { choose, chooseForError, types } = createRepresentations([csv, ...builtInFormatters]);
    assert.deepEqual(types, ['text/csv', json, yaml, html]);
    assert.equal(choose(undefined), csv);
    assert.equal(choose('application/json').type, json);
    assert.equal(chooseForError('image/png'), csv);
  });

  it('refuses a list from which no normal response could be made', () => {
    assert.throws(() => createRepresentations([]), TypeError);
    assert.throws(
      () => createRepresentations(builtInFormatters.filter(({ errorsOnly }) => errorsOnly === true)),
      TypeError,
    );
  });
});

describe('built-in formatters', () => {
  it('have a lower-case type without parameters, which their Content-Type begins with, and a tag each', () => {
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

  it('write any plain value in YAML as in JSON', () => {
    const parts = ['null', 'true', '1', '0x1', '2020-01-01', 'a', '- ', ': ', '#', '\n', 'é', '😀', ' ', '@', '`', '|'];
    const more = ['>', '%', '!', '&a', '*a', '"', "'", '\\', '{', '[', ',', '~', '\t', '?'];
    const text = fc.array(fc.constantFrom(...parts, ...more), { maxLength: 5 }).map((some) => some.join(''));
    const leaf = fc.oneof(text, fc.double({ noNaN: true }), fc.boolean(), fc.constant(null));
    fc.assert(
      fc.property(fc.dictionary(text, fc.oneof(leaf, fc.array(leaf, { maxLength: 3 })), { maxKeys: 4 }), (value) => {
        const json = jsonFormatter.format(value, '');
        assert.deepEqual(parse(yamlFormatter.format(JSON.parse(json), '')), JSON.parse(json));
      }),
    );
  });

  it('write a repeated value twice, since not every YAML reader knows aliases', () => {
    const user = { name: 'demo' };
    assert.equal(yamlFormatter.format({ from: user, to: user }, ''), 'from:\n  name: demo\nto:\n  name: demo\n');
  });

  it('write an error as RFC 9457 has it, with every member of the plain body', () => {
    const errors = [{ pointer: '#/query/limit', detail: 'is not a number' }];
    const body = { code: 404, message: '404: Not Found', detail: 'There is no such hotel.', errors };
    assert.deepEqual(JSON.parse(problemJsonFormatter.format(body, '')), {
      type: 'about:blank',
      title: 'Not Found',
      status: 404,
      ...body,
    });
  });

  it('use the page of a problem as its type', () => {
    const body = { code: 404, message: '404: Not Found', info_url: 'https://desk.test/problems/not-found' };
    const written = JSON.parse(problemJsonFormatter.format(body, 'Not found'));
    assert.deepEqual(written, { type: body.info_url, title: 'Not found', status: 404, ...body });
  });

  it('write a value as a page under its title', () => {
    const page = htmlFormatter.format({ name: 'Krone' }, 'Hotel');
    assert.ok(page.includes('<title>Hotel</title>'));
    assert.ok(page.includes('<dt>name</dt><dd>Krone</dd>'));
  });

  it('can have another page for people, in the same place', () => {
    const headers = { 'Content-Security-Policy': "default-src 'self'" };
    const formatters = withHtmlPage((_value, title) => `<${title}>`, headers);
    assert.deepEqual(formatters.slice(0, -1), builtInFormatters.slice(0, -1));
    const page = formatters.at(-1);
    assert.deepEqual([page?.type, page?.headers, page?.format(1, 'T')], ['text/html', headers, '<T>']);
  });
});
