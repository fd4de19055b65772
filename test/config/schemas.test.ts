/** The JSON Schemas against the reader: they refuse what they can know to be wrong, and never what the reader accepts. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Ajv } from 'ajv';
import fc from 'fast-check';
import { parse, parseAllDocuments } from 'yaml';
import { configurationFrom, requireSettings, schemaFiles } from '#config';
import { settingTable } from '#server/product';
import { documentedYaml, exampleConfiguration } from '../support/documented-examples.ts';
import { untyped } from '../support/untyped.ts';
import { exampleRecords, values } from './example-records.ts';
import { fieldTables } from './field-tables.ts';

const files = schemaFiles(settingTable);
const ajv = new Ajv({ strict: false, allErrors: true });
const validators = new Map(Object.entries(files).map(([file, schema]) => [file, ajv.compile(schema)]));

/** Returns why a schema refuses a value, or undefined if it accepts it. */
function refusal(file: string, value: unknown): string | undefined {
  const validate = validators.get(file);
  assert.ok(validate, file);
  return validate(value) ? undefined : ajv.errorsText(validate.errors);
}

function assertAccepted(file: string, value: unknown): void {
  assert.equal(refusal(file, value), undefined, JSON.stringify(value));
}

function isRead(configuration: object): boolean {
  return configurationFrom(untyped({ records: [], ...configuration })).errors.length === 0;
}

const fixtures = fileURLToPath(new URL('../fixtures/config', import.meta.url));

/** The schema for each folder of fixtures. */
const schemaOf: Readonly<Record<string, string>> = {
  services: 'records.json',
  ratelimit: 'limits.json',
  users: 'users.json',
  demo: 'demo.json',
};

/** The fixtures that a schema accepts although the reader does not, by what a schema cannot know. */
const unknowable: Readonly<Record<string, readonly string[]>> = {
  'what other records and documents say': [
    'services/auth-service-none-is-default',
    'services/auth-service-twice',
    'services/auth-service-unknown',
    'services/auth-service-unknown-alone',
    'services/canary-alone',
    'services/canary-with-other-auth',
    'services/canary-with-other-labels',
    'services/duplicate-name',
    'services/duplicate-prefix',
    'services/identity-header-added',
    'services/identity-header-matched',
    'services/rate-limit-service-twice',
    'services/same-match-without-weight',
    'services/shadow-alone',
    'services/shadow-twice',
    'services/version-twice',
    'services/weights-above-hundred',
    'services/weights-below-hundred',
    'ratelimit/duplicate-descriptor',
    'ratelimit/duplicate-descriptor-in-another-document',
    'ratelimit/duplicate-nested-descriptor',
    'users/duplicate-name',
    'users/duplicate-name-in-two-documents',
    'users/key-in-two-documents',
  ],
  'what GATEWAY_DOMAIN is': [
    'services/ambassador-host',
    'services/ambassador-resource',
    'services/kubernetes-kind',
    'services/manifest-annotation-mistyped',
    'services/wrong-api-version',
  ],
  'what the text in an annotation means': [
    'services/manifest-broken-yaml-inside',
    'services/manifest-duplicate-key-inside',
    'services/manifest-fault-in-second-record',
    'services/manifest-quoted-annotation',
  ],
  'whether a regular expression is valid, and what it matches': [
    'services/prefix-regex-broken',
    'services/prefix-regex-in-lower-case',
    'services/prefix-regex-too-large',
    'services/prefix-regex-with-back-reference',
    'services/prefix-regex-with-look-ahead',
    'services/regex-header-broken',
    'services/regex-rewrite-group-missing',
  ],
  'how two values of the record compare': [
    'services/auth-service-key-header-as-identity',
    'services/header-twice-in-different-case',
    'services/health-check-statuses-reversed',
    'services/version-ends-before-it-is-deprecated',
    'ratelimit/limits-that-count-alike',
    'ratelimit/limits-with-unlimited',
    'ratelimit/replaces-itself',
    'ratelimit/token-bucket-too-slow',
    'ratelimit/token-bucket-without-flow',
    'ratelimit/window-too-long',
  ],
  'a rule between a field and the inside of another': [
    'services/cors-credentials-of-any-origin',
    'services/cors-star-with-origin',
    'services/grpc-health-check-without-grpc',
    'services/grpc-retry-without-grpc',
    'services/prefix-exact-with-slash-at-its-end',
    'services/retry-codes-without-condition',
    'services/retry-condition-without-codes',
    'services/retry-per-try-timeout-above-timeout',
    'services/rewrite-with-prefix-regex',
  ],
  'a sum of lengths': [
    'services/added-headers-too-long',
    'services/added-headers-too-long-in-utf-8',
    'services/label-groups-too-many',
  ],
  'more of a text than its form': [
    'services/added-header-with-command',
    'services/added-header-with-half-a-character',
    'services/added-header-with-space-at-its-end',
    'services/cors-origin-with-path',
    'services/cors-star-inside-a-label',
    'services/host-rewrite-with-scheme',
    'services/host-with-star',
    'services/hostname-with-star-inside',
    'services/prefix-with-encoded-letter',
    'services/removed-header-name',
    'services/service-reference-malformed',
    'services/upgrade-to-h2c',
    'services/version-info-with-credentials',
    'services/version-of-everything',
    'services/version-of-the-gateway-itself',
    'users/hash-short-salt',
    'users/hash-too-costly',
  ],
};

describe('the JSON Schemas', () => {
  it('accept every example of the documentation and the demo that the reader accepts', () => {
    const { records, limits, users, demo } = exampleConfiguration();
    const valid = records.filter((record) => isRead({ records: [record] }));
    const validUsers = users.filter((user) => isRead({ users: [user] }));
    assert.ok(valid.length > 20 && limits.length > 5 && validUsers.length > 1);
    for (const record of valid) assertAccepted('records.json', record);
    for (const domain of limits) assertAccepted('limits.json', domain);
    assertAccepted('users.json', { users: validUsers });
    assertAccepted('demo.json', demo);
  });

  it('accept Services of Kubernetes with an annotation, and lists of them', () => {
    const services = documentedYaml().filter(({ kind }) => kind === 'Service');
    assert.ok(services.length > 0);
    for (const service of services) assertAccepted('records.json', service);
    assertAccepted('records.json', { apiVersion: 'v1', kind: 'List', items: services });
  });

  it('refuse every file of the golden tests, except those that are listed with what no schema can know', () => {
    const all = Object.keys(schemaOf).flatMap((folder) =>
      readdirSync(`${fixtures}/${folder}`).map((name) => `${folder}/${name.replace('.yaml', '')}`),
    );
    assert.deepEqual(all.filter(isAccepted).sort(), Object.values(unknowable).flat().sort());
  });

  for (const [kind, record] of Object.entries(exampleRecords()))
    it(`never refuse a ${kind} that the reader accepts`, () => {
      const { required, optional } = record;
      let read = 0;
      const check = (names: readonly string[], variants: Readonly<Record<string, unknown>>) => {
        const fields = Object.fromEntries(names.flatMap((name) => (name in optional ? [[name, optional[name]]] : [])));
        const given = { ...required, ...fields, ...variants };
        if (!isRead({ records: [given] })) return;
        read += 1;
        assertAccepted('records.json', given);
      };
      const names = Object.keys({ ...required, ...optional });
      const some = fc.subarray(Object.keys(optional), { maxLength: 4 });
      const variants = fc.dictionary(fc.constantFrom(...names), fc.constantFrom(...values), { maxKeys: 2 });
      fc.assert(fc.property(some, variants, check), { seed: 1, numRuns: 3000 });
      assert.ok(read > 150, String(read));
    });

  it('never refuse limits that the reader accepts', () => {
    let read = 0;
    const limit = parse(
      '{ unit: minute, unit_multiplier: 2, requests_per_unit: 10, unlimited: true, name: a, replaces: [{ name: b }], algorithm: token_bucket, burst: 5 }',
    );
    const some = fc.subarray(Object.keys(limit));
    const variants = fc.dictionary(fc.constantFrom(...Object.keys(limit)), fc.constantFrom(...values), { maxKeys: 1 });
    const own = fc.dictionary(
      fc.constantFrom('key', 'value', 'shadow_mode', 'share_threshold', 'metadata', 'descriptors'),
      fc.constantFrom(...values),
      { maxKeys: 1 },
    );
    const check = (names: readonly string[], more: object, descriptor: object, isListed: boolean) => {
      const one = { ...Object.fromEntries(names.map((name) => [name, limit[name]])), ...more };
      const descriptors = [{ key: 'user', rate_limit: isListed ? [one] : one, ...descriptor }];
      if (!isRead({ limits: [{ domain: 'gateway', descriptors }] })) return;
      read += 1;
      assertAccepted('limits.json', { domain: 'gateway', descriptors });
    };
    fc.assert(fc.property(some, variants, own, fc.boolean(), check), { seed: 1, numRuns: 3000 });
    assert.ok(read > 100, String(read));
  });

  it('give each field of a record its documentation, and defaults and examples that are valid', () => {
    for (const [kind, table] of Object.entries(fieldTables)) {
      const { properties } = Object(files['records.json'])['definitions'][kind];
      for (const { name, schema } of Object.values(table)) {
        const { description, default: value, examples = [] } = properties[name];
        assert.ok(description.length > 10, `${kind} ${name}`);
        for (const one of [value, ...examples])
          assert.ok(one === undefined || schema.safeParse(one).success, `${kind} ${name}: ${JSON.stringify(one)}`);
      }
    }
    const { timeout_ms, retry_policy, proto } = Object(files['records.json'])['definitions'].AuthService.properties;
    assert.deepEqual([timeout_ms.minimum, timeout_ms.default, proto.enum], [1, 5000, ['http', 'grpc']]);
    assert.equal(retry_policy, undefined);
  });

  it('describe each setting as an option of a program', () => {
    const { properties } = Object(files['settings.json']);
    assert.deepEqual(Object.keys(properties), Object.keys(settingTable));
    const options = { port: 9000, logLevel: 'debug', trustedProxies: ['10.0.0.0/8'], serviceAddresses: { a: 'a:1' } };
    requireSettings(settingTable, options as Parameters<typeof requireSettings<typeof settingTable>>[1]);
    assertAccepted('settings.json', options);
    for (const wrong of [{ port: 70_000 }, { port: '9000' }, { logLevel: 'loud' }, { prot: 1 }, { trustedProxies: '' }])
      assert.notEqual(refusal('settings.json', wrong), undefined, JSON.stringify(wrong));
  });
});

/** Whether the schema accepts all documents. An editor reports text that is no YAML by itself. */
function isAccepted(fixture: string): boolean {
  const documents = parseAllDocuments(readFileSync(`${fixtures}/${fixture}.yaml`, 'utf8'));
  if (documents.some(({ errors }) => errors.length > 0)) return false;
  const file = schemaOf[fixture.split('/')[0] ?? ''] ?? '';
  try {
    return documents.map((one) => one.toJS()).every((value) => value === null || refusal(file, value) === undefined);
  } catch {
    // Aliases that expand to too many values.
    return false;
  }
}
