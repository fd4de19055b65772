/** Tests the extraction of records from Kubernetes manifests. */
import assert from 'node:assert/strict';
import { unfoldManifest } from '../../src/config/manifest.ts';
import { readYaml } from '../../src/config/yaml.ts';

function unfold(text: string) {
  const place = { file: 'hotel.yaml', lineOf: (line: number) => line };
  const { results: documents, errors } = readYaml(text, place, (document) => document);
  assert.deepEqual(errors, []);
  const parts = documents.map((document) => unfoldManifest(document, 'gateway.local'));
  return { records: parts.flatMap((part) => part.records), errors: parts.flatMap((part) => part.errors) };
}

const manifest = (annotation: string) => `apiVersion: v1
kind: Service
metadata:
  name: hotel
  labels: { app: hotel }
  annotations:
    prometheus.io/scrape: "true"
    example.com/owners: [a, b]
${annotation}
spec:
  ports: [{ port: 80 }]
`;

function check(title: string, annotation: string, expected: readonly (readonly [unknown, line: number])[]): void {
  it(title, () => {
    const { records, errors } = unfold(manifest(annotation));
    assert.deepEqual([records.map((record) => [record.value, record.lineAt([])]), errors], [expected, []]);
  });
}

describe('a Service manifest', () => {
  check(
    'returns the line in the file for each record in a literal block',
    '    gateway.local/config: |\n      ---\n      a: 1\n\n      ---\n      # two\n      b: 2\n',
    [
      [{ a: 1 }, 11],
      [{ b: 2 }, 15],
    ],
  );
  check('counts blank lines at the start of a literal block', '    gateway.local/config: |+\n\n\n      a: 1\n', [
    [{ a: 1 }, 12],
  ]);
  check(
    'returns the line of the key for a folded block',
    '    gateway.local/config: >\n\n      {a: 1,\n      b: 2}\n',
    [[{ a: 1, b: 2 }, 9]],
  );
  check('returns the line of the key for a quoted string', '    gateway.local/config: "a: 1\\n---\\nb: 2"\n', [
    [{ a: 1 }, 9],
    [{ b: 2 }, 9],
  ]);
  check('can have no annotation', '', []);
  check('can have an empty annotation', '    gateway.local/config: ""\n', []);
  check('can have other annotations', '    other.example/config: |\n      a: 1\n', []);

  it('can have no metadata.annotations, and can share a file with bare records', () => {
    const bare = 'apiVersion: v1\nkind: Service\nmetadata:\n  name: hotel\n---\nb: 2\n';
    const { records, errors } = unfold(bare);
    assert.deepEqual([records.map((record) => [record.value, record.lineAt([])]), errors], [[[{ b: 2 }, 6]], []]);
  });

  it('can be an item of a List, as kubectl prints several resources, beside records without a Service', () => {
    const service = manifest('    gateway.local/config: |\n      a: 1\n').replaceAll(/^(?=.)/gm, '    ');
    const { records, errors } = unfold(`kind: List\nitems:\n  -\n${service}  - b: 2\n    c: 3\n`);
    const placed = records.map((record) => [record.value, record.lineAt([])]);
    assert.deepEqual(
      [placed, errors],
      [
        [
          [{ a: 1 }, 13],
          [{ b: 2, c: 3 }, 17],
        ],
        [],
      ],
    );
    assert.equal(records[1]?.lineAt(['c']), 18);
  });
});

describe('the annotation of another object', () => {
  const annotated = (kind: string, annotation: string) =>
    `kind: ${kind}\nmetadata:\n  name: app\n  annotations:\n    ${annotation}: |\n      apiVersion: a\n      kind: b\n`;

  it('is read like that of a Service, beside the object itself', () => {
    const { records, errors } = unfold(annotated('Ingress', 'gateway.local/config'));
    const kinds = records.map(({ value, lineAt }) => [Object(value).kind, lineAt([])]);
    assert.deepEqual(
      [kinds, errors],
      [
        [
          ['Ingress', 1],
          ['b', 6],
        ],
        [],
      ],
    );
  });

  for (const kind of ['Ingress', 'Service']) {
    it(`is an error if it contains records of another gateway domain: ${kind}`, () => {
      const { errors } = unfold(`apiVersion: v1\n${annotated(kind, 'getambassador.io/config')}`);
      assert.deepEqual(errors, [
        {
          source: { file: 'hotel.yaml', line: 6 },
          record: `${kind} app`,
          message: 'the annotation getambassador.io/config contains records, which are not read',
          remedy: 'Set GATEWAY_DOMAIN=getambassador.io to read them, or remove the annotation.',
        },
      ]);
    });
  }

  it('is an error even beside an annotation that is read, and in JSON', () => {
    const json = '    getambassador.io/config: \'{"apiVersion":"a","kind":"AuthService"}\'\n';
    const { errors } = unfold(manifest(`    gateway.local/config: "a: 1"\n${json}`));
    assert.deepEqual(
      errors.map(({ source }) => source.line),
      [10],
    );
  });
});

describe('a list of the Kubernetes API', () => {
  it('gives its kind and version to items that have none', () => {
    const annotations = '{ gateway.local/config: "a: 1" }';
    const { records, errors } = unfold(
      `apiVersion: v1\nkind: ServiceList\nitems:\n- metadata: { name: hotel, annotations: ${annotations} }\n`,
    );
    assert.deepEqual([records.map(({ value }) => value), errors], [[{ a: 1 }], []]);
    const { records: others } = unfold('apiVersion: a/v1\nkind: AuthServiceList\nitems:\n- metadata: { name: auth }\n');
    assert.deepEqual(
      others.map(({ value }) => value),
      [{ apiVersion: 'a/v1', kind: 'AuthService', metadata: { name: 'auth' } }],
    );
  });

  it('can be empty, which the API writes as null', () => {
    assert.deepEqual(unfold('kind: ServiceList\nitems: null\n'), { records: [], errors: [] });
  });

  it('is an error if its items are no list', () => {
    const { records, errors } = unfold('kind: IngressList\nitems: { a: 1 }\n');
    assert.deepEqual([records, errors.map(({ message }) => message)], [[], ['items must be a list, not a map']]);
  });
});
