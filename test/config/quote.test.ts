/** Tests that errors, notices, diagnostics and explanations never contain secrets from the configuration. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { parse } from 'yaml';
import { type ConfigurationRecords, configurationFrom, formatErrors, quote } from '#config';
import { authRecord, callAsDemo, demoRecord, desksOf, limitRecord, mappingRecord } from '../support/desks.ts';
import { testServers } from '../support/serve.ts';
import { untyped } from '../support/untyped.ts';
import { fieldTables } from './field-tables.ts';

describe('quote', () => {
  for (const [text, expected] of [
    ['/v1/hotels', '/v1/hotels'],
    ['two\nlines "and" quotes', 'two\nlines "and" quotes'],
    ['http://ann:pw@host/x', 'http://…@host/x'],
    ['https://token@host', 'https://…@host'],
    ['ann:pw@host', '…@host'],
    ['//ann@host', '…@host'],
    ['http://ann:p/w#y@w@host', 'http://…@host'],
    ['http://ann:p?w@host', 'http://…'],
    ['http://host?a@key', 'http://…'],
    ['/to/http%3A%2F%2Fann%3Apw%40host/x', '…%40host/x'],
    ['/to/http%253A%252F%252Fann%2540host', '…%2540host'],
    ['http://host/?key=1', 'http://host/?…'],
    ['http://host?key', 'http://host?…'],
    ['http%3A%2F%2Fhost%3Fkey', 'http%3A%2F%2Fhost%3F…'],
    ['http://ann:pw@host?key', 'http://…@host?…'],
    ['/v1?token=1', '/v1?…'],
    ['/v1/hotels?/(a|b)?', '/v1/hotels?/(a|b)?'],
    ['/@scope/package', '/@scope/package'],
    ['ops@example', 'ops@example'],
    ['key: -----BEGIN PRIVATE KEY-----\nMIGH', 'key: …'],
    ['x'.repeat(200), `${'x'.repeat(120)}…`],
  ] as const)
    it(`shows ${JSON.stringify(text).slice(0, 50)} as ${expected.slice(0, 50)}`, () => {
      assert.equal(quote(text), JSON.stringify(expected));
    });

  it('escapes characters that look like a space or like nothing', () => {
    assert.equal(quote('\ufeffa b\u00a0c\u200b\u{e0001}é'), '"\\ufeffa b\\u00a0c\\u200b\\udb40\\udc01é"');
  });
});

/** Every generated secret contains this mark, and no other text does. */
const mark = 'hunter2';

/** Texts with a password, token or key, which may appear in any field. */
const urls: readonly ((secret: string) => string)[] = [
  (secret) => `http://ann:${secret}@h.example`,
  (secret) => `http://ann:${secret}@h.example/?k=1`,
  (secret) => `https://${secret}@h.example`,
  (secret) => `ann:${secret}@h.example:80`,
  (secret) => `//ann:${secret}@h.example`,
  (secret) => `http://h.example/?${secret}`,
  (secret) => `h.example/?k=${secret}`,
  (secret) => `/to/http:%2f%2fann:${secret}%40h.example`,
  (secret) => `(http://ann:${secret}@h.example`,
];
/** Values of the maps whose values are never shown, because the whole value may be a secret. */
const values: readonly ((secret: string) => string)[] = [
  ...urls,
  (secret) => secret,
  (secret) => `${secret}(`,
  (secret) => `(?=${secret})`,
  (secret) => `${secret}\n`,
  (secret) => `%REQ(${secret})%`,
];
const secretMaps = new Set([
  'headers',
  'regex_headers',
  'query_parameters',
  'regex_query_parameters',
  'add_request_headers',
  'add_response_headers',
  'add_auth_headers',
]);
/** Clients and operators can read these fields of a valid record, so they cannot contain secrets. */
const shownFields = new Set([
  'name',
  'prefix',
  'rewrite',
  'regex_rewrite',
  'path_redirect',
  'prefix_redirect',
  'domain',
]);

const samples = [
  [mappingRecord('m', '/m', 'http://h.example', { bypass_auth: true }), fieldTables.Mapping],
  [authRecord, fieldTables.AuthService],
  [limitRecord, fieldTables.RateLimitService],
  [{ apiVersion: 'gateway/v1', kind: 'Version', name: 'v', prefix: '/v', sunset: '2026-06-30' }, fieldTables.Version],
] as const;

interface Leaf {
  readonly record: object;
  readonly field: string;
  readonly path: readonly string[];
}

/** Every string in the sample records, with each field set to its example. */
const leaves = samples.flatMap(([record, fields]) =>
  Object.values({
    ...fields,
    head: { name: 'apiVersion', example: 'x' },
    kind: { name: 'kind', example: 'x' },
  }).flatMap(({ name, example = '' }): Leaf[] => {
    const withField = { ...record, [name]: parse(example.replace(/ \(or .*/, '')) };
    return textsIn(withField[name as keyof typeof withField], [name]).map((path) => ({
      record: withField,
      field: name,
      path,
    }));
  }),
);

function textsIn(value: unknown, path: readonly string[]): (readonly string[])[] {
  if (typeof value === 'string') return [path];
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) => textsIn(inner, [...path, key]));
}

function replaced(record: object, path: readonly string[], text: string): object {
  const copy = structuredClone(record);
  const last = path.at(-1) ?? '';
  const inner = path.slice(0, -1).reduce((value, key) => Reflect.get(value, key), copy);
  Reflect.set(inner, last, text);
  return copy;
}

const templatesOf = ({ field }: Leaf) => (secretMaps.has(field) ? values : urls);

function errorsAndNotices(given: ConfigurationRecords): string {
  const { errors, notices } = configurationFrom(given);
  return formatErrors([...errors, ...notices], '/') + JSON.stringify([errors, notices]);
}

function checkHidden(said: string, where: string): void {
  const at = said.indexOf(mark);
  assert.equal(at, -1, `${where}: ${said.slice(Math.max(0, at - 200), at + 50)}`);
}

describe('a secret in a text of a record', () => {
  const openDesk = desksOf(testServers());

  it('never appears in an error or notice, whatever surrounds it', () => {
    const around = fc.string({ maxLength: 8 });
    fc.assert(
      fc.property(fc.constantFrom(...leaves), fc.nat(), around, around, (leaf, choice, before, after) => {
        const templates = templatesOf(leaf);
        const text = templates[choice % templates.length]?.(before + mark + after) ?? '';
        const record = replaced(leaf.record, leaf.path, text);
        const said = errorsAndNotices(untyped({ records: [record, authRecord] }));
        checkHidden(said, leaf.path.join('.'));
      }),
      { numRuns: 300 },
    );
  });

  it('never appears in an error, as a value or as a key', () => {
    for (const leaf of leaves) {
      const { record, path } = leaf;
      const asValues = templatesOf(leaf).map((template) => replaced(record, path, template(mark)));
      const asKeys = urls.map((template) => replaced(record, [...path.slice(0, -1), template(mark)], 'x'));
      for (const one of [...asValues, ...asKeys])
        checkHidden(errorsAndNotices(untyped({ records: [one] })), path.join('.'));
    }
  });

  it('never appears in diagnostics or explanations of a valid record', async () => {
    const isGood = (record: object) => configurationFrom(untyped({ records: [record] })).errors.length === 0;
    const accepted = leaves
      .filter(({ field, record }) => !shownFields.has(field) && Reflect.get(record, 'kind') === 'Mapping')
      .map((leaf) => templatesOf(leaf).map((template) => replaced(leaf.record, leaf.path, template(mark))))
      .flatMap((records) => records.filter(isGood).slice(-2))
      .map((record, index) => ({ ...record, name: `m${index}`, prefix: `/m${index}` }));
    assert.ok(accepted.length > 10);
    const records = [authRecord, ...accepted];
    const config = untyped({ records, users: [demoRecord] });
    const desk = await openDesk({ config, only: ['gateway', 'auth'] });
    const { text } = await callAsDemo(desk, '/gateway/v0/diag/').expect(200);
    checkHidden(text, 'diagnostics');
    for (const { name } of accepted) {
      checkHidden(JSON.stringify(await desk.explain({ method: 'GET', url: `/${name}` })), name);
    }
  });
});
