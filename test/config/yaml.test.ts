/** YAML streams: every document that parses, and the line of each of its parts. */
import assert from 'node:assert/strict';
import * as fc from 'fast-check';
import { stringify } from 'yaml';
import { readYaml } from '../../src/config/yaml.ts';

const place = { file: 'a.yaml', lineOf: (line: number) => line };
const read = (text: string) => readYaml(text, place, (document) => document);

describe('readYaml', () => {
  it('skips empty documents and comments', () => {
    assert.deepEqual(
      read('# nothing\n---\n---\na: 1\n---\n# nothing\n').results.map(({ value }) => value),
      [{ a: 1 }],
    );
    assert.deepEqual(read(''), { results: [], errors: [] });
  });

  it('keeps the documents around one that does not parse', () => {
    const { results, errors } = read('a: 1\n---\nb: [1\n---\nc: 3\n');
    assert.deepEqual(
      results.map(({ value }) => value),
      [{ a: 1 }, { c: 3 }],
    );
    assert.equal(errors.length, 1);
  });

  it('reads Windows line ends and a byte order mark', () => {
    const [document] = read('\uFEFFa: 1\r\nb: 2\r\n').results;
    assert.deepEqual(document?.value, { a: 1, b: 2 });
    assert.equal(document?.lineAt(['b']), 2);
  });

  it('names every key that stands twice, and refuses the document', () => {
    const { results, errors } = read('a: 1\nb: 1\n"a": 2\nb: 3\n');
    assert.deepEqual(results, []);
    assert.deepEqual(
      errors.map(({ source, message }) => [source.line, message]),
      [
        [3, 'the key "a" appears twice in one map'],
        [4, 'the key "b" appears twice in one map'],
      ],
    );
  });

  it('refuses tags that it does not know', () => {
    assert.match(read('a: !secret x\n').errors[0]?.message ?? '', /Unresolved tag: !secret/);
  });

  it('refuses a document of too many levels with its line, and reads the one after it', () => {
    const deep = (levels: number) => `${'['.repeat(levels)}1${']'.repeat(levels)}`;
    assert.equal(read(deep(64)).errors.length, 0);
    for (const text of [
      deep(65),
      '['.repeat(100_000),
      deep(65).replaceAll('[', '- ').replaceAll(']', ''),
      `? ${deep(65)}\n: 1`,
    ]) {
      const { results, errors } = read(`a: 1\n---\n${text}\n---\nb: 2\n`);
      assert.deepEqual(results.map(({ value }) => value)[0], { a: 1 });
      assert.deepEqual([errors[0]?.source.line, errors[0]?.message], [3, 'this is nested more than 64 levels deep']);
    }
  });

  it('follows a few aliases', () => {
    assert.deepEqual(read('a: &x [1]\nb: *x\n').results[0]?.value, { a: [1], b: [1] });
  });

  function check(path: readonly PropertyKey[], expected: number): void {
    it(`finds line ${expected} for ${path.map(String).join('.') || 'the document'}`, () => {
      const text = '# head\na:\n  b:\n    - c: 1\n      d: 2\n    -\n      e: 3\nf: &x\n  g: 1\nh: *x\n';
      assert.equal(read(text).results[0]?.lineAt(path), expected);
    });
  }

  check([], 2);
  check(['a'], 2);
  check(['a', 'b'], 3);
  check(['a', 'b', 0, 'd'], 5);
  check(['a', 'b', 1, 'e'], 7);
  check(['a', 'b', 1, 'nowhere'], 7);
  check(['a', 'nowhere', 'at', 'all'], 2);
  check(['h', 'g'], 10);

  it('never throws, whatever the text', () => {
    const unit = fc.constantFrom(
      'a',
      ':',
      ' ',
      '\n',
      '-',
      '[',
      '{',
      '}',
      '"',
      "'",
      '|',
      '>',
      '&',
      '*',
      '!',
      '#',
      '?',
      '%',
      '\t',
      '<<: ',
    );
    void fc.assert(fc.property(fc.string({ unit, maxLength: 40 }), (text) => void read(text)));
  });

  it('reads what a YAML writer writes', () => {
    void fc.assert(
      fc.property(
        fc.dictionary(fc.stringMatching(/^[a-z]{1,8}$/), fc.oneof(fc.string(), fc.integer(), fc.boolean()), {
          noNullPrototype: true,
        }),
        (value) => {
          assert.deepEqual(read(stringify(value)).results[0]?.value, value);
        },
      ),
    );
  });
});
