import assert from 'node:assert/strict';
import fc from 'fast-check';
import { builtInFormatters, createRepresentations, type Formatter, Problem } from '#http';

const json = 'application/json';
const problemJson = 'application/problem+json';
const yaml = 'application/yaml';
const html = 'text/html';

describe('choose', () => {
  const { choose } = createRepresentations();

  function check(accept: string | undefined, expected: string) {
    it(`is ${expected} for Accept: ${accept ?? '(absent)'}`, () => {
      assert.equal(choose(accept).type, expected);
      assert.equal(choose(accept).type, expected, 'and the same when it is remembered');
    });
  }

  check(undefined, json);
  check('', json);
  check('   ', json);
  check('*/*', json);
  check('application/*', json);
  check('application/json', json);
  check('application/JSON', json);
  check('application/json; charset=utf-8', json);
  check('application/json;charset="utf-8"', json);
  check('application/json;version=2', json);
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
  check('garbage', json);
  check('application/json;q=abc', json);
  check(';;;,,,', json);
  check('application', json);
  check('/', json);
  check('application/yaml, garbage', yaml);

  function checkRefused(accept: string) {
    it(`refuses Accept: ${accept} with the list of what there is`, () => {
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

  it('never refuses a header that names no media range', () => {
    fc.assert(
      fc.property(fc.string(), (accept) => {
        fc.pre(!accept.includes('/'));
        assert.equal(choose(accept).type, json);
      }),
    );
  });

  it('finds JSON wherever it stands and whatever parameters it has', () => {
    const type = fc.stringMatching(/^[a-z]{1,5}\/[a-z]{1,5}$/);
    const parameters = fc.array(fc.stringMatching(/^; ?[a-pr-z][a-z]{0,6}=[a-z\d-]{1,7}$/), { maxLength: 3 });
    fc.assert(
      fc.property(fc.array(type), parameters, fc.array(type), (before, some, after) => {
        fc.pre(![...before, ...after].includes(html));
        assert.equal(choose([...before, `application/json${some.join('')}`, ...after].join(',')).type, json);
      }),
    );
  });

  it('gives a formatter or a problem for any text, and nothing else', () => {
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

describe('the memory of choices', () => {
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

  it('spares a client that says the same again the negotiation', () => {
    const negotiates = counted();
    assert.deepEqual([negotiates('text/csv'), negotiates('text/csv'), negotiates('text/*')], [true, false, true]);
  });

  it('forgets the oldest when clients send ever other headers', () => {
    const negotiates = counted();
    negotiates('text/csv');
    for (let index = 0; index < 1000; index += 1) negotiates(`text/csv, a/b${index}`);
    assert.deepEqual([negotiates('text/csv'), negotiates('text/csv, a/b999')], [true, false]);
  });

  it('keeps no header of unusual length', () => {
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

  check(undefined, json);
  check('', json);
  check('*/*', json);
  check('application/*', json);
  check('application/json', json);
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
