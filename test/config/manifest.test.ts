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
