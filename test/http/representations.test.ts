/** Content negotiation for normal and error responses, its cache, and the formatters. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { parse } from 'yaml';
import {
  builtInFormatters,
  createRepresentations,
  type Formatter,
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

const { choose, chooseForError } = createRepresentations();

describe('choose', () => {
  const rows: Readonly<Record<string, readonly (string | undefined)[]>> = {
    [json]: [
      undefined,
      '',
      '   ',
      '*/*',
      'application/*',
      json,
      'application/JSON',
      `${json}; charset=utf-8`,
      `${json};charset="utf-8"`,
      `${json};version=2`,
      `${json};q=0.5;charset=utf-8`,
      'garbage',
      `${json};q=abc`,
      ';;;,,,',
      'application',
      '/',
      'text/html;q=0.5, application/json',
      'image/png, */*;q=0.1',
      `${problemJson}, application/json`,
      // Sent by Java's HttpURLConnection.
      'text/plain, image/gif, image/jpeg, *; q=.2, */*; q=.2',
    ],
    [yaml]: [
      yaml,
      'text/html;q=0.5, application/yaml;q=0.9',
      '*/*, application/json;q=0',
      `${yaml}, garbage`,
      'image/png, application/yaml;q=0.33333',
      'application/yaml ; Q=0.5',
      'APPLICATION/YAML',
    ],
    [html]: [html, 'text/*', 'text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8'],
  };
  for (const [type, accepts] of Object.entries(rows))
    it(`returns ${type} for Accept: ${accepts.map((accept) => accept ?? '(absent)').join(' | ')}`, () => {
      for (const accept of accepts) assert.equal(choose(accept).type, type, accept);
      for (const accept of accepts) assert.equal(choose(accept).type, type, `${accept}, cached`);
    });

  it('treats a header of more than 1,024 characters as accepting everything', () => {
    const header = (length: number) => `text/html;q=0.1,${'image/png,'.repeat(length)}`.slice(0, length);
    assert.equal(choose(header(1024)).type, 'text/html');
    assert.equal(choose(header(1025)).type, json);
    assert.equal(chooseForError(header(15_000)).type, json);
  });

  for (const accept of ['image/png', problemJson, 'application/vnd.api+json', '*/*;q=0', `${json};q=0`])
    it(`rejects Accept: ${accept} and lists the available types`, () => {
      const detail = 'This resource is available as application/json, application/yaml, text/html.';
      assert.throws(() => choose(accept), { slug: 'not-acceptable', detail });
    });

  it('returns a formatter or throws not-acceptable for any text, and chooseForError never throws', () => {
    const weights = [';q=0', ';q=1', ';q=0.5'];
    const parts = fc.constantFrom(json, yaml, html, '*/*', 'image/*', ...weights, ',', ', ', '"', 'q', '=');
    const ranges = fc.array(parts).map((some) => some.join(''));
    fc.assert(
      fc.property(fc.oneof(fc.string(), ranges), (accept) => {
        assert.ok(builtInFormatters.includes(chooseForError(accept)));
        try {
          assert.ok(builtInFormatters.includes(choose(accept)));
        } catch (thrown) {
          assert.ok(thrown instanceof Problem && thrown.slug === 'not-acceptable');
        }
      }),
    );
  });
});

describe('cached choices', () => {
  /** Returns a function that says whether an `Accept` header leads to a new negotiation. */
  function createProbe() {
    let reads = 0;
    const formatter: Formatter = {
      get type() {
        reads += 1;
        return 'text/csv';
      },
      contentType: 'text/csv',
      format: () => '',
    };
    const { choose } = createRepresentations([formatter]);
    return (accept: string) => {
      const before = reads;
      choose(accept);
      return reads > before;
    };
  }

  it('are negotiated once for each header', () => {
    const negotiates = createProbe();
    assert.deepEqual([negotiates('text/csv'), negotiates('text/csv'), negotiates('text/*')], [true, false, true]);
  });

  it('are evicted, the oldest first, when clients send many different headers', () => {
    const negotiates = createProbe();
    negotiates('text/csv');
    for (let index = 0; index < 1000; index += 1) negotiates(`text/csv, a/b${index}`);
    assert.deepEqual([negotiates('text/csv'), negotiates('text/csv, a/b999')], [true, false]);
  });

  it('do not include unusually long headers', () => {
    const negotiates = createProbe();
    const long = `text/csv${', a/b'.repeat(150)}`;
    assert.deepEqual([negotiates(long), negotiates(long)], [true, true]);
  });
});

describe('chooseForError', () => {
  for (const [type, accepts] of Object.entries<readonly (string | undefined)[]>({
    [json]: [
      undefined,
      '',
      '*/*',
      'application/*',
      json,
      `${json}, ${problemJson};q=0`,
      'image/png',
      `${json};q=0`,
      '*/*;q=0',
    ],
    [problemJson]: [
      problemJson,
      `${problemJson}, ${json}`,
      `${json}, ${problemJson}`,
      `${problemJson}, */*`,
      `*/*, ${problemJson}`,
    ],
    [yaml]: [yaml],
    [html]: [html],
  }))
    it(`returns ${type} for Accept: ${accepts.map((accept) => accept ?? '(absent)').join(' | ')}`, () => {
      for (const accept of accepts) assert.equal(chooseForError(accept).type, type, accept);
    });
});

describe('createRepresentations', () => {
  const csv: Formatter = { type: 'text/csv', contentType: 'text/csv', format: () => '' };

  it('uses the first formatter as the default', () => {
    const { choose, chooseForError, types } = createRepresentations([csv, ...builtInFormatters]);
    assert.deepEqual(types, ['text/csv', json, yaml, html]);
    assert.equal(choose(undefined), csv);
    assert.equal(choose('application/json').type, json);
    assert.equal(chooseForError('image/png'), csv);
  });

  it('rejects a list without a formatter for normal responses', () => {
    for (const formatters of [[], [problemJsonFormatter]])
      assert.throws(() => createRepresentations(formatters), TypeError);
  });
});

describe('built-in formatters', () => {
  it('write YAML that parses to the same value as JSON, also with a parser of YAML 1.1', () => {
    const parts = ['null', 'true', '1', '0x1', '2020-01-01', 'a', '- ', ': ', '#', '\n', 'é', '😀', ' ', '@', '`', '|'];
    const older = ['no', 'y', '1:30', '1_0', '2020-01-01T10:00:00Z', '\x7f', '\x85', '\u2028', '\ufffe'];
    const more = ['>', '%', '!', '&a', '*a', '"', "'", '\\', '{', '[', ',', '~', '\t', '?'];
    const text = fc.array(fc.constantFrom(...parts, ...older, ...more), { maxLength: 5 }).map((some) => some.join(''));
    const leaf = fc.oneof(text, fc.double({ noNaN: true }), fc.boolean(), fc.constant(null));
    fc.assert(
      fc.property(fc.dictionary(text, fc.oneof(leaf, fc.array(leaf, { maxLength: 3 })), { maxKeys: 4 }), (value) => {
        const json = jsonFormatter.format(value, '');
        const written = yamlFormatter.format(JSON.parse(json), '');
        assert.doesNotMatch(written, /[\x7f-\x9f\u2028\ufffe]/);
        for (const version of ['1.1', '1.2'] as const) assert.deepEqual(parse(written, { version }), JSON.parse(json));
      }),
      { examples: [[{ blanks: ' \n' }], [{ check_in: '2020-01-01', no: 'no' }]] },
    );
  });

  it('write a repeated value twice, because not every YAML parser supports aliases', () => {
    const user = { name: 'demo' };
    assert.equal(yamlFormatter.format({ from: user, to: user }, ''), 'from:\n  name: demo\nto:\n  name: demo\n');
  });

  it('write an error as RFC 9457 with all members of the plain body, and the type in the notes', () => {
    const errors = [{ parameter: 'limit', detail: 'is not a number' }];
    const plain = { code: 404, message: '404: Not Found', detail: 'There is no such hotel.', errors };
    const withPage = { ...plain, info_url: 'https://desk.test/problems/not-found' };
    const notes = { title: 'No such thing', meaning: undefined, remedy: undefined, requestId: 'one' };
    const check = (body: { message: string }, type: string | undefined, expected: object) =>
      assert.deepEqual(JSON.parse(problemJsonFormatter.format(body, body.message, { ...notes, type })), {
        ...expected,
        status: 404,
        ...body,
      });
    check(plain, undefined, { type: 'about:blank', title: 'Not Found' });
    check(withPage, '/problems/not-found', { type: '/problems/not-found', title: 'No such thing' });
  });

  it('can be combined with a custom HTML page, in the same position', () => {
    const headers = { 'Content-Security-Policy': "default-src 'self'" };
    const formatters = withHtmlPage((_value, title) => `<${title}>`, headers);
    assert.deepEqual(formatters.slice(0, -1), builtInFormatters.slice(0, -1));
    const page = formatters.at(-1);
    assert.deepEqual([page?.type, page?.headers, page?.format(1, 'T')], ['text/html', headers, '<T>']);
  });
});
