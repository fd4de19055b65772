/** Tests the parsing of YAML streams: values, line numbers, limits and errors. */
import assert from 'node:assert/strict';
import * as fc from 'fast-check';
import { stringify } from 'yaml';
import { readYaml } from '../../src/config/yaml.ts';

const place = { file: 'a.yaml', lineOf: (line: number) => line };
const read = (text: string) => readYaml(text, place, (document) => document);

const numbered = (count: number, line: (index: number) => string) =>
  Array.from({ length: count }, (_, index) => line(index)).join('');

/** Nine nested lists of nine aliases each, which expand to 387 million items. */
const aliasBomb = () =>
  numbered(9, (index) => {
    const items = Array.from({ length: 9 }, () => (index === 0 ? 'x' : `*a${index - 1}`));
    return `a${index}: &a${index} [${items.join(', ')}]\n`;
  });

describe('readYaml', () => {
  for (const [title, text, expected, faults] of [
    ['skips empty documents and comments', '# nothing\n---\n---\na: 1\n---\n# nothing\n', [{ a: 1 }], 0],
    ['accepts an empty text', '', [], 0],
    ['reads the documents around one that does not parse', 'a: 1\n---\nb: [1\n---\nc: 3\n', [{ a: 1 }, { c: 3 }], 1],
    ['resolves aliases', 'a: &x [1]\nb: *x\n', [{ a: [1], b: [1] }], 0],
    ['reports every key that appears twice, and rejects the document', 'a: 1\nb: 1\n"b": 2\na: 3\n', [], 2],
    ['reports one error for two records without a separator', 'a: 1\nb: 1\nc: 1\na: 2\nb: 3\nc: 2\n', [], 1],
  ] as const)
    it(title, () => {
      const { results, errors } = read(text);
      assert.deepEqual([results.map(({ value }) => value), errors.length], [expected, faults]);
    });

  it('reads a sequence of more items than a call may have arguments', () => {
    const [document] = read(`[${'{},'.repeat(130_000)}]`).results;
    assert.ok(Array.isArray(document?.value));
    assert.equal(document.value.length, 130_000);
  });

  it('accepts Windows line endings and a byte order mark', () => {
    const [document] = read('\uFEFFa: 1\r\nb: 2\r\n').results;
    assert.deepEqual(document?.value, { a: 1, b: 2 });
    assert.equal(document?.lineAt(['b']), 2);
  });

  for (const [what, text, message, remedy] of [
    ['an unknown tag', 'a: 1\nb: !secret x\n', /Unresolved tag$/, /^Put the text that begins with ! into quotes, or /],
    ['a bare asterisk', 'a: 1\nb: [*]\n', /Alias cannot be an empty string$/, /into quotes, for example "\*"\.$/],
    [
      'a reserved character',
      'a: 1\nb: @x\n',
      /cannot start with reserved character @$/,
      /^Put the text into quotes\.$/,
    ],
    [
      'an unknown anchor',
      'a: &x 1\nb: [*x, *y.z]\n',
      /begins with \* refers to an anchor/,
      /quotes, for example "\*\./,
    ],
    [
      'an anchor below its alias',
      'a: 1\nb: *x\nc: &x 1\n',
      /there is none with this name above it$/,
      /define the anch/,
    ],
  ] as const)
    it(`rejects ${what} with its line and a remedy`, () => {
      const [error, ...others] = read(text).errors;
      assert.deepEqual([error?.source.line, others], [2, []]);
      assert.match(error?.message ?? '', message);
      assert.match(error?.remedy ?? '', remedy);
    });

  it('rejects a document that is nested too deeply, with its line, and reads the next one', () => {
    const deep = (levels: number) => `${'['.repeat(levels)}1${']'.repeat(levels)}`;
    assert.equal(read(deep(64)).errors.length, 0);
    const block = deep(65).replaceAll('[', '- ').replaceAll(']', '');
    for (const text of [deep(65), '['.repeat(30_000), block, `? ${deep(65)}\n: 1`]) {
      const { results, errors } = read(`a: 1\n---\n${text}\n---\nb: 2\n`);
      assert.deepEqual(results.map(({ value }) => value)[0], { a: 1 });
      assert.deepEqual([errors[0]?.source.line, errors[0]?.message], [3, 'this is nested more than 64 levels deep']);
    }
  });

  const bombs: readonly (readonly [string, string, number, RegExp])[] = [
    ['a thousand brackets', '['.repeat(1000), 1, /nested more than 64 levels/],
    ['four hundred question marks', '? '.repeat(400), 1, /nested more than 64 levels/],
    ['aliases of aliases', aliasBomb(), 1, /the aliases expand to too many values/],
    [
      'a map of many keys',
      `a:\n${numbered(5000, (index) => `  k${index}: 1\n`)}`,
      2,
      /has 5000 keys, and at most 1000/,
    ],
    ['a key that appears many times', numbered(900, () => 'k: 1\n'), 2, /the key "k" appears twice/],
    ['a large document', `a: 1\n---\nb:\n${'- x\n'.repeat(600_000)}`, 2, /more than 2 million characters/],
  ];
  for (const [what, text, line, message] of bombs)
    it(`rejects ${what} with its line`, () => {
      const { errors } = read(text);
      assert.match(errors[0]?.message ?? '', message);
      assert.equal(errors[0]?.source.line, line);
      assert.ok(errors.length <= 103, `${errors.length} errors`);
    });

  it('stops when a text has too many errors, and reports that', () => {
    const { errors } = read('a: [\n---\n'.repeat(1000));
    assert.ok(errors.length < 110, `${errors.length} errors`);
    assert.match(errors.at(-1)?.message ?? '', /more than 100 errors/);
  });

  it('reports a document with thousands of characters that are no YAML once, and reads the next one', () => {
    for (const document of ['- ]\n'.repeat(1000), `[${','.repeat(1000)}]\n`]) {
      const { results, errors } = read(`${document}---\na: 1\n`);
      assert.deepEqual(results.map(({ value }) => value).at(-1), { a: 1 });
      assert.equal(errors.length, 1);
    }
  });

  it('leaves the stacks of other errors as they are', () => {
    let stack: string | undefined;
    readYaml('a: 1\n---\n[,,]\n', { file: 'a.yaml', lineOf: Number }, () => {
      stack = new Error('of a reader').stack;
    });
    for (const found of [stack, new Error('of others').stack]) assert.match(found ?? '', /yaml[.]test[.]ts/);
  });

  it('finds the line of each part, or of the deepest existing part on the path', () => {
    const text = '# head\na:\n  b:\n    - c: 1\n      d: 2\n    -\n      e: 3\nf: &x\n  g: 1\nh: *x\n';
    const lineAt = (path: string) => {
      const keys = path.split(' ').flatMap((key) => (key === '' ? [] : /\d/.test(key) ? Number(key) : key));
      return read(text).results[0]?.lineAt(keys);
    };
    const paths = ['', 'a', 'a b', 'a b 0 d', 'a b 1 e', 'a b 1 nowhere', 'a nowhere at all', 'h g'];
    assert.deepEqual(paths.map(lineAt), [2, 2, 3, 5, 7, 7, 2, 10]);
  });

  it('does not quote text that is not valid YAML, because it may contain a secret', () => {
    for (const text of ['a: |- s3cr3t', 'a: >s3cr3t\n x', 'a: [1]\n ] s3cr3t', 'a: !s3cr3t x']) {
      const { errors } = read(text);
      assert.ok(errors.length > 0, text);
      assert.doesNotMatch(JSON.stringify(errors), /s3cr3t/);
    }
  });

  it('never throws for any text', () => {
    const unit = fc.constantFrom(...'a: \n-[{}"\'|>&*!#?%\t', '<<: ');
    void fc.assert(fc.property(fc.string({ unit, maxLength: 40 }), (text) => void read(text)));
  });

  it('reads back what a YAML library writes', () => {
    const value = fc.oneof(fc.string(), fc.integer(), fc.boolean());
    const map = fc.dictionary(fc.stringMatching(/^[a-z]{1,8}$/), value, { noNullPrototype: true });
    void fc.assert(
      fc.property(map, (written) => assert.deepEqual(read(stringify(written)).results[0]?.value, written)),
    );
  });
});
