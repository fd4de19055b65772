/** Wrong values, wherever a person or program can pass one: no message is zod's own, and none is dropped in silence. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import * as z from 'zod';
import { configurationFrom, formatErrors, listSettings, parseSettings, requireSettings } from '#config';
import { settingTable } from '#server/product';
import type { FieldTable } from '../../src/config/fields/field.ts';
import { createFrontdesk, type FrontdeskOptions } from '../../src/index.ts';
import { parseJsonRequest } from '../../src/ratelimit/http/json.ts';
import { type DemoRows, loadDemo } from '../../src/travel/demo.ts';
import { openDatabase } from '../../src/travel/storage/open-database.ts';
import { type DocumentedApi, type Operation, readApi, type Variation } from '../openapi/documented-api.ts';
import { demoRecord, desksOf } from '../support/desks.ts';
import { testServers } from '../support/serve.ts';
import { fieldTables } from './field-tables.ts';

/** The text of zod's own messages during these tests. */
const zodText = 'message of zod';

const strings = ['', 'x', 'x'.repeat(5000), '\0', '2030-02-30', '2030-13-01T25:00:00Z', 'http://'];
const numbers = [-1, 1.5, 1e12, Number.NaN, Number.POSITIVE_INFINITY, 5n];
const containers = [[], {}, [null], [5], ['x', 'x'], { x: 1 }, { '': null }];
/** One value of each other type. */
const others = [null, true, 'x', -1, new Date(0), [null], { x: 1 }];

/** For each expected type, many values of this type and one of each other type. */
const wrongValues: Readonly<Record<string, readonly unknown[]>> = {
  string: [...strings, ...others, 1.5],
  number: [...numbers, ...others, ''],
  boolean: others,
  object: [...containers, ...others],
};

type Path = readonly PropertyKey[];

/**
 * Yields copies of a value with one part, at any depth, replaced by a wrong value, removed, or extended by an unknown
 * key.
 */
function* wrongVersions(value: unknown, path: Path = []): Generator<readonly [what: string, version: unknown]> {
  const at = path.join('.');
  for (const wrong of new Set(wrongValues[typeof value])) yield [`${at} is ${shown(wrong)}`, wrong];
  if (typeof value !== 'object' || value === null) return;
  if (!Array.isArray(value)) yield [`${at} has an unknown key`, { ...value, nonsense: 1 }];
  for (const [key, inner] of Object.entries(value)) {
    const { [key]: _, ...rest } = value as Readonly<Record<string, unknown>>;
    yield [`${at} lacks ${key}`, rest];
    for (const [what, version] of wrongVersions(inner, [...path, key])) yield [what, replaced(value, key, version)];
  }
}

/** Yields a map with `required` and one field with a wrong value. Using all fields in each map would take too long. */
function* wrongFields(fields: object, required: object): Generator<readonly [what: string, version: unknown]> {
  for (const [field, value] of Object.entries(fields))
    for (const [what, version] of wrongVersions(value, [field])) yield [what, { ...required, [field]: version }];
  yield* wrongVersions(required);
}

/** Yields copies of a value with the key `__proto__` in one of its maps, at any depth. Parsers of YAML and JSON make such. */
function* withProto(value: unknown, path: Path = []): Generator<readonly [where: string, version: unknown]> {
  if (typeof value !== 'object' || value === null) return;
  if (!Array.isArray(value)) yield [path.join('.'), { ...value, ['__proto__']: 'x' }];
  for (const [key, inner] of Object.entries(value))
    for (const [where, version] of withProto(inner, [...path, key])) yield [where, replaced(value, key, version)];
}

function replaced(value: object, key: string, inner: unknown): object {
  return Array.isArray(value) ? value.with(Number(key), inner) : { ...value, [key]: inner };
}

function json(value: unknown): string {
  return JSON.stringify(value, (_, part) => (typeof part === 'bigint' ? String(part) : part));
}

function shown(value: unknown): string {
  return json(value).slice(0, 60);
}

/** Fields whose examples lack some of their keys, in YAML. */
const wholeFields = parse(`
retry_policy: { retry_on: [connect-failure], num_retries: 2, per_try_timeout: 1s, per_try_timeout_ms: 5, retriable_status_codes: [503] }
circuit_breakers: { priority: default, max_connections: 1, max_pending_requests: 1, max_requests: 1, max_retries: 1, max_upgrades: 1 }
health_checks:
  timeout: 3s
  timeout_ms: 5
  interval: 5s
  interval_ms: 5
  unhealthy_threshold: 2
  healthy_threshold: 1
  health_check: { http: { path: /health, hostname: a.test, expected_statuses: [{ min: 200, max: 200 }] } }
cors: { origins: [https://app.example.com], methods: [GET], headers: [X-A], exposed_headers: [X-B], credentials: true, max_age: "600" }
add_request_headers: { X-A: { value: a, append: false }, X-B: b }
labels:
  gateway:
    - all:
        - user: { header: X-Travel-User, omit_if_not_present: true, default: none }
        - request_headers: { key: k, header_name: X-K, omit_if_not_present: true, default: none }
        - generic_key: { key: k, value: v }
        - generic_key: v
        - remote_address: { key: client }
        - masked_remote_address: { key: network, v4_prefix_mask_len: 24, v6_prefix_mask_len: 64 }
        - source_cluster
`);

/** Records of each kind with all fields that config/README.md lists, and a manifest. */
const records: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  ...Object.fromEntries(Object.entries(fieldTables).map(([kind, table]) => [kind, wholeRecord(kind, table)])),
  Service: {
    apiVersion: 'v1',
    kind: 'Service',
    spec: {},
    metadata: { name: 'shop', namespace: 'default', annotations: {}, labels: { a: 'b' } },
  },
};

function wholeRecord(kind: string, table: FieldTable): Readonly<Record<string, unknown>> {
  const fields = Object.values(table).map(({ name, example }) => [name, wholeFields[name] ?? parse(example)]);
  return { apiVersion: 'gateway/v1', kind, ...Object.fromEntries(fields) };
}

const limit = parse(
  '{ unit: minute, unit_multiplier: 2, requests_per_unit: 10, unlimited: false, name: a, replaces: [{ name: b }], algorithm: token_bucket, burst: 5 }',
);
const descriptor = {
  key: 'user',
  value: 'a*',
  rate_limit: limit,
  shadow_mode: true,
  quota_mode: true,
  detailed_metric: true,
  value_to_metric: true,
  share_threshold: true,
  metadata: { team: 'travel' },
};
const descriptorOfPath = { key: 'path', rate_limit: [limit] };
const domain = { domain: 'gateway', descriptors: [{ ...descriptor, descriptors: [descriptorOfPath] }] };

type Versions = Iterable<readonly [what: string, version: unknown]>;
type Read = (version: unknown) => string | Promise<string>;

/** The places where values are passed. `read` returns the message that a user gets for a wrong value. */
const places: readonly (readonly [where: string, versions: Versions, read: Read])[] = [
  ...Object.entries(records).map(([kind, record]) => {
    const versions = wrongFields(record, requiredOf(record));
    return [`${kind} records`, versions, (version: unknown) => configurationErrors({ records: [version] })] as const;
  }),
  ['a domain of limits', wrongVersions(domain), (version) => configurationErrors({ records: [], limits: [version] })],
  ['a user', wrongVersions(demoRecord), (version) => configurationErrors({ records: [], users: [version] })],
  ['a configuration', wrongVersions({ records: [], limits: [], users: [], demo: {} }), configurationErrors],
  ['tables', wrongVersions({ hotels: [{ name: 'a' }] }), (demo) => configurationErrors({ records: [], demo })],
  [
    'settings as options',
    wrongFields(settingOptions(), {}),
    (version) => messageOf(() => requireSettings(settingTable, Object(version))),
  ],
  ['options', wrongVersions({ only: ['hotel'], demo: true, services: {}, dormant: true }), messageOfOptions],
  ['a request to the rate-limit service', wrongVersions(rateLimitRequest()), messageOfRequest],
];

function requiredOf(record: Readonly<Record<string, unknown>>): object {
  const names = ['apiVersion', 'kind', 'name', 'prefix', 'service', 'auth_service', 'sunset', 'metadata'];
  return Object.fromEntries(names.flatMap((name) => (name in record ? [[name, record[name]]] : [])));
}

function configurationErrors(given: unknown): string {
  const { errors, notices } = configurationFrom(given as Parameters<typeof configurationFrom>[0]);
  return formatErrors([...errors, ...notices], '/');
}

function settingOptions(): object {
  const camelCase = (variable: string) => variable.toLowerCase().replace(/_(.)/g, (_, letter) => letter.toUpperCase());
  const given = {
    serviceAddresses: { a: 'a:1', b: ['a:1'] },
    trustedProxies: ['::1'],
    corsOrigins: ['*'],
    adminUsers: ['a'],
  };
  return {
    ...Object.fromEntries(listSettings(settingTable).map(({ variable }) => [camelCase(variable), 'x'])),
    ...given,
  };
}

/** Returns the message of the error that `read` throws, or an empty text. */
function messageOf(read: () => unknown): string {
  try {
    read();
    return '';
  } catch (error) {
    return (error as Error).message;
  }
}

async function messageOfOptions(options: unknown): Promise<string> {
  // Reads only the options, because the configuration does not exist.
  const given = { config: '/nowhere', ...(options as object) };
  return createFrontdesk((typeof options === 'object' ? given : options) as FrontdeskOptions).then(
    () => '',
    (error: Error) => error.message,
  );
}

function rateLimitRequest(): object {
  const entries = [{ key: 'k', value: 'v' }];
  return {
    domain: 'd',
    descriptors: [{ entries, limit: { requestsPerUnit: 1, unit: 'DAY' }, hitsAddend: 1 }],
    hitsAddend: 1,
  };
}

function messageOfRequest(version: unknown): string {
  return messageOf(() => parseJsonRequest(json(version)));
}

describe('messages about wrong values never come from zod', () => {
  const servers = testServers(after);
  const openDesk = desksOf(servers);
  const { localeError } = z.config();

  let origin: string;

  before(async () => {
    z.config({ localeError: () => zodText });
    const { app } = await openDesk({ publicUrl: 'http://desk.test' });
    ({ origin } = await servers.http(app.callback()));
  });

  after(() => void z.config({ localeError }));

  it('this test detects messages from zod', () => {
    const { error } = z.string().safeParse(5);
    assert.deepEqual(oddLines(`the port: ${error?.issues[0]?.message}`), [`the port: ${zodText}`]);
  });

  for (const [where, versions, read] of places)
    it(`for ${where}`, async () => {
      const odd: string[] = [];
      for (const [how, version] of versions) {
        const lines = oddLines(await read(version));
        odd.push(...lines.map((line) => `${how}: ${line}`));
      }
      assert.deepEqual(odd, []);
    });

  it('for environment variables', () => {
    const messages = listSettings(settingTable).flatMap(({ variable }) =>
      strings.map((text) => messageOf(() => parseSettings(settingTable, { [variable]: text }))),
    );
    assert.deepEqual(messages.flatMap(oddLines), []);
  });

  it('for demo data', async () => {
    const whole = parse(readFileSync('config/demo.yaml', 'utf8')) as DemoRows;
    const database = await openDatabase({ url: 'sqlite::memory:' });
    servers.later(database.close);
    const odd: string[] = [];
    for (const [table, [first]] of Object.entries(whole)) {
      const versions = [...wrongVersions(first)];
      const demo = { [table]: versions.map(([, row]) => row) } as DemoRows;
      const message = await loadDemo(database, demo, { nowMs: 0 }).then(
        () => '',
        (error: Error) => error.message,
      );
      assert.ok(message.split('\n').length > versions.length / 2, `${table}: rows were not checked`);
      odd.push(...oddLines(message));
    }
    assert.deepEqual(odd, []);
  });

  for (const prefix of ['/v1', '/v2', '/v1/hotels', '/v1/cars'])
    it(`for bodies and arguments of ${prefix}`, async () => {
      const api = await readApi(origin, prefix);
      const odd: string[] = [];
      for (const operation of api.operations)
        for (const sent of wrongRequests(api, operation)) {
          const { text, status } = await api.call(operation, sent);
          odd.push(...oddLines(text).map((line) => `${shown(sent)}: ${line}`));
          assert.ok(status < 500, shown(sent));
        }
      assert.deepEqual(odd, []);
    });
});

function wrongRequests({ bodyOf }: DocumentedApi, operation: Operation): readonly Variation[] {
  const body = bodyOf(operation);
  const headers = { 'Content-Type': 'application/json' };
  const bodies = body ? Array.from(wrongVersions(body.example), ([, one]) => ({ body: json(one), headers })) : [];
  const names = operation.parameters.filter((one) => one.in === 'query').map(({ name }) => name);
  const alone = names.map((name) => ({ query: { [name]: 'x'.repeat(3000) } }));
  // One response names all invalid arguments.
  const together = ['x', '2030-02-30', '-1', '1.5'].map((text) => ({
    query: Object.fromEntries(names.map((name) => [name, text])),
  }));
  return [...bodies, ...alone, ...together];
}

/** Returns lines that contain zod's text, contradict themselves, or have a missing part. */
function oddLines(text: string): readonly string[] {
  const odd = new RegExp(`${zodText}|\\bundefined\\b|\\[object |must be (an? .+), not \\1$`);
  return text.split('\n').filter((line) => odd.test(line));
}

/** What people write into files, with each field of a record by itself, because not all of them go together. */
function* writtenMaps(): Generator<readonly [what: string, map: unknown, around: (version: unknown) => object]> {
  const { Service: _, ...kinds } = records;
  for (const [kind, record] of Object.entries(kinds)) {
    const required = { ...requiredOf(record), ...(kind === 'Mapping' && { auth_service: undefined }) };
    for (const [field, value] of Object.entries(record)) {
      const around = (version: unknown) => ({ records: [{ ...required, [field]: version }] });
      if (isAccepted(around(value))) yield [`${kind} ${field}`, value, around];
    }
  }
  const { metadata: unused, ...used } = descriptor;
  const limits = { domain: 'gateway', descriptors: [{ ...used, descriptors: [descriptorOfPath] }] };
  yield ['domain of limits', limits, (version) => ({ records: [], limits: [version] })];
  yield ['user', demoRecord, (version) => ({ records: [], users: [version] })];
}

function isAccepted(given: object): boolean {
  return configurationFrom(given as Parameters<typeof configurationFrom>[0]).errors.length === 0;
}

describe('the key __proto__ in a map of a record, a limit or a user', () => {
  it('is refused at any depth, because a condition that is left out would match more than meant', () => {
    const maps = [...writtenMaps()];
    const accepted = maps.flatMap(([what, map, around]) =>
      [...withProto(map)].flatMap(([where, version]) => (isAccepted(around(version)) ? [`${what} ${where}`] : [])),
    );
    assert.deepEqual(accepted, []);
    for (const field of ['Mapping headers', 'Mapping labels', 'AuthService add_auth_headers'])
      assert.ok(
        maps.some(([what]) => what === field),
        `${field} was not checked`,
      );
  });
});
