/** Plain YAML and the library: what both read is the same, and what is not plain is left to the library. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import * as fc from 'fast-check';
import { stringify } from 'yaml';
import type { Documents, Place } from '../../src/config/placed-document.ts';
import { readDocuments } from '../../src/config/yaml-documents.ts';
import { readAnyYaml } from '../../src/config/yaml-library.ts';
import { readPlainYaml } from '../../src/config/yaml-plain.ts';

const place: Place = { file: 'a.yaml', lineOf: (line) => line + 100, record: 'Service a' };

type Path = readonly (string | number)[];

function pathsIn(value: unknown, path: Path = []): readonly Path[] {
  if (typeof value !== 'object' || value === null) return [path];
  const members = Object.entries(value);
  return [path, ...members.flatMap(([key, one]) => pathsIn(one, [...path, Array.isArray(value) ? Number(key) : key]))];
}

function at(value: unknown, path: Path): unknown {
  return path.reduce<unknown>((inner, key) => Reflect.get(Object(inner), key), value);
}

/** All that can be asked of documents. */
function viewOf({ documents, errors }: Documents) {
  const views = documents.map(({ value, file, lineAt, placeWithin }) => {
    const paths = pathsIn(value);
    const texts = paths.filter((path) => typeof at(value, path) === 'string');
    const places = texts.map((path) => placeWithin(path, 'Mapping a'));
    const within = places.map(({ file, record, lineOf }) => [file, record, lineOf(1), lineOf(3)]);
    return { value, file, lines: paths.map((path) => [path, lineAt(path)]), within };
  });
  return { errors, views };
}

function checkSame(text: string): void {
  assert.deepEqual(viewOf(readDocuments(text, place)), viewOf(readAnyYaml(text, place)));
}

const record = `# A record.
apiVersion: gateway/v1
kind: Mapping   # behind spaces
name: hotel
prefix: /v1/hotels/
service: http://127.0.0.1:8080
rewrite: ""
timeout_ms: 3000
weight: 0.5
bypass_auth: false
note: it's a "note":100% of a#1, [really] # not
city: Köln 
empty:
labels:
  gateway:
    - user:
        - x-user: { header: X-User, omit_if_not_present: true }
    -
      other:
      - x-a: {"header":"X-\\u0041","list":[1,-2,[],{}]}
        x-b: 'it''s'
`;

const manifest = `---
apiVersion: v1
kind: Service
metadata:
  name: hotel
  labels:
    example.com/keep: |
      label
  annotations:
    example.com/keep: |+
      keep

    example.com/strip: |-
      strip
    gateway.local/config: |
      ---
${record.replace(/^(?=.)/gm, '      ')}
      ---
      a: 1
spec:
  ports: [{ port: 80 }]
`;

function checkPlain(title: string, text: string): void {
  it(`reads ${title}`, () => {
    assert.notEqual(readPlainYaml(text), undefined);
    checkSame(text);
  });
}

function checkLeft(title: string, text: string): void {
  it(`leaves ${title} to the library`, () => {
    assert.equal(readPlainYaml(text), undefined);
    checkSame(text);
  });
}

describe('plain YAML', () => {
  checkPlain('a record', record);
  checkPlain('a manifest', manifest);
  checkPlain('a record as JSON', '{"apiVersion":"gateway/v1","kind":"Mapping","timeout_ms":3000,"labels":{}}');
  checkPlain('JSON of several lines', JSON.stringify({ a: [1, { b: null }], c: 'é\n"\\' }, undefined, 2));
  checkPlain('a list', '- a\n- - b\n  - c: 1\n    d: 2\n-\n- e\n');
  checkPlain(
    'words that only YAML 1.1 takes for something else',
    'a: yes\nb: off\nc: 12:30:45\nd: 2001-01-01\ne: 1_000\n',
  );
  checkPlain('a number with a zero before it as the decimal that it is', 'a: 0123\n');
  checkPlain('a block at the end of a file that does not end its line', 'a: |\n  b');
  checkPlain('nothing', '# nothing\n\n');

  checkLeft('a key that stands twice', 'a: 1\n"a": 2\n');
  checkLeft('a key that stands twice in braces', 'a: {b: 1, "b": 2}\n');
  checkLeft('a key that is no text', '1: a\n');
  checkLeft('a key that every object has', '__proto__: 1\nconstructor: 2\n');
  checkLeft('an anchor and its alias', 'a: &x [1]\nb: *x\n');
  checkLeft('a merge key', 'a:\n  <<: { b: 1 }\n');
  checkLeft('a tag', 'a: !!str 1\n');
  checkLeft('an unknown tag', 'a: !secret x\n');
  checkLeft('hexadecimal and octal numbers', 'a: [0x1F, 0o17]\n');
  checkLeft('infinity and its like', 'a: .inf\nb: .nan\n');
  checkLeft('no number', 'a: .nan\n');
  checkLeft('a number too long to be exact', 'a: 99999999999999999999\n');
  checkLeft('a word in capitals that means something', 'a: TRUE\nb: Null\n');
  checkLeft('text over several lines', 'a: one\n  two\nb: "one\n  two"\n');
  checkLeft('a folded block', 'a: >\n  one\n  two\n');
  checkLeft('a block with an indentation of its own', 'a: |2\n    one\n');
  checkLeft('a tab', 'a:\n\tb: 1\n');
  checkLeft('Windows line ends', 'a: |\r\n  b\r\n');
  checkLeft('a Windows line end in a block', 'a: |\n  b\r\n  c\n');
  checkLeft('blank lines with spaces in a block', 'a: |\n  b\n   \n  c\n');
  checkLeft('blank lines with spaces below a block', 'a: |+\n  b\n\n   \nc: 1\n');
  checkLeft('escapes that JSON has not', 'a: "\\x41"\nb: "\\e"\n');
  checkLeft('a quoted scalar that does not end on its line', 'a: "b\nc: d"\n');
  checkLeft('an explicit key', '? a\n: b\n');
  checkLeft('an indentation that fits nothing', 'a:\n    b: 1\n  c: 2\n');
  checkLeft('a colon without a space in braces', 'a: {b:1}\n');
  checkLeft('a comment without a space before it', 'a: "b"#c\n');
  checkLeft('a key too long for the library', `${'a'.repeat(1100)}: 1\n`);
  checkLeft('a comma too many', 'a: [1, 2,]\n');
  checkLeft('brackets over several lines below a key', 'a: [1,\n  2]\n');
  checkLeft('more brackets than anybody needs', `a: ${'['.repeat(200)}${']'.repeat(200)}\n`);

  it('reads a text of many megabytes', () => {
    const text = 'x'.repeat(2e7);
    const [document] = readDocuments(`a: "${text}"\n`, place).documents;
    assert.ok(Object(document?.value).a === text);
  });

  it('finds the documents of a stream, plain or not', () => {
    const text = `${record}---\n${manifest}--- # two\n{"a":\n1}\n---\na: &x 1\nb: *x\n---\n# none\n---\n"c": |\n  d`;
    assert.equal(readDocuments(text, place).documents.length, 5);
    checkSame(text);
  });

  it('leaves a stream with a fault, a directive or the end of a document in it to the library', () => {
    for (const text of [
      'a: "\n---\nb: 1\n---\nc: "\n',
      'a: }\n---\nb: 1\n',
      '%YAML 1.1\n---\na: yes\n---\nb: yes\n',
      'a: 1\n...\n%TAG ! tag:example.com,2000:\n---\nb: !c 1\n',
      '\uFEFF%YAML 1.1\n---\na: 012\n',
    ]) {
      checkSame(text);
    }
  });
});

const folder = (name: string) => fileURLToPath(new URL(`../${name}`, import.meta.url));
const textsIn = (name: string) =>
  readdirSync(folder(name)).map((file) => readFileSync(`${folder(name)}/${file}`, 'utf8'));
const texts = [record, manifest, ...textsIn('../config/services'), ...textsIn('fixtures/config/services')];

/** What a mistake or somebody clever may put anywhere. */
const bits = [
  ...[
    '\n',
    '\n  ',
    '\n    ',
    ' ',
    '  ',
    ':',
    ': ',
    '- ',
    '\n- ',
    '-',
    '#',
    ' #',
    '"',
    "'",
    '|',
    '|-',
    '|+',
    '>',
    '\\',
    ',',
    '\t',
    '\r\n',
    '\r',
  ],
  ...[
    '[',
    ']',
    '{',
    '}',
    '&a ',
    '*a',
    '!',
    '!!str ',
    '? ',
    '%',
    '@',
    '`',
    '~',
    '<<: ',
    '__proto__: ',
    '\n---\n',
    '--- ',
    '\n...\n',
    '\uFEFF',
  ],
  ...[
    'null',
    'True',
    'yes',
    '0x1F',
    '0o17',
    '017',
    '1e3',
    '.5',
    '-0',
    '+1',
    '.nan',
    '1:30',
    'a',
    'a: 1',
    '{a: 1}',
    '[a, b]',
    '{"a":1}',
  ],
  ...[
    '"\\x41"',
    '""',
    "''",
    'é',
    '\u00a0',
    '\u0085',
    '\u2028',
    '\u0000',
    '\u{1f600}',
    '|\n  x\n\n',
    '\n  - a',
    'a#b',
    'a:b',
    '-a',
    '\\n',
  ],
];
const bit = fc.constantFrom(...bits);

/** Puts bits into a text, takes characters and lines out of it, and moves lines. */
const mutated = fc
  .tuple(
    fc.constantFrom(...texts),
    fc.array(fc.tuple(fc.nat(), fc.nat({ max: 8 }), fc.option(bit)), { minLength: 1, maxLength: 4 }),
  )
  .map(([text, changes]) => changes.reduce(change, text));

function change(text: string, [place, length, inserted]: readonly [number, number, string | null]): string {
  if (inserted === null && length > 4) {
    const lines = text.split('\n');
    const at = place % lines.length;
    return lines.with(at, ' '.repeat(length - 5) + (lines[at] ?? '').trimStart()).join('\n');
  }
  const at = place % (text.length + 1);
  return text.slice(0, at) + (inserted ?? '') + text.slice(at + (inserted === null ? length : 0));
}

/** A few lines of a text, as whoever cuts and pastes leaves them. */
const cut = fc.tuple(mutated, fc.nat(), fc.integer({ min: 1, max: 8 })).map(([text, from, count]) => {
  const lines = text.split('\n');
  return lines
    .slice(from % lines.length)
    .slice(0, count)
    .join('\n');
});

const scalar = fc.oneof(bit, fc.string(), fc.integer(), fc.double({ noNaN: true }), fc.boolean(), fc.constant(null));
const { value } = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small' },
    scalar,
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(fc.oneof(fc.stringMatching(/^[a-z_./-]{1,6}$/), bit), tie('value'), {
      maxKeys: 4,
      noNullPrototype: true,
    }),
  ),
}));

describe('readDocuments gives what the library gives', () => {
  const check = (title: string, text: fc.Arbitrary<string>, numRuns: number) => {
    it(title, () => void fc.assert(fc.property(text, checkSame), { numRuns }));
  };
  check('for records and manifests with mistakes', mutated, 400);
  check('for pieces of them', cut, 1000);
  check(
    'for bits of YAML in any order',
    fc.array(bit, { maxLength: 20 }).map((parts) => parts.join('')),
    1500,
  );
  check(
    'for values as a YAML writer writes them',
    fc.array(value).map((values) => values.map((one) => stringify(one)).join('---\n')),
    300,
  );
  check(
    'for values as JSON',
    value.map((one) => JSON.stringify(one)),
    300,
  );
});
