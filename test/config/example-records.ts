/** Records with the examples of all fields, and values from which tests make others at random. */
import { parse } from 'yaml';
import { fieldTables } from './field-tables.ts';

export interface ExampleRecord {
  readonly required: Readonly<Record<string, unknown>>;
  readonly optional: Readonly<Record<string, unknown>>;
}

/** Records of each kind with the examples of all fields. */
export function exampleRecords(): Readonly<Record<string, ExampleRecord>> {
  return Object.fromEntries(
    Object.entries(fieldTables).map(([kind, table]) => {
      const rows = Object.values(table).map((row) => [row.name, parse(row.example), 'default' in row] as const);
      const of = (isOptional: boolean) =>
        Object.fromEntries(rows.filter((row) => row[2] === isOptional).map(([name, value]) => [name, value]));
      const extra = { Version: { sunset: '2027-06-30' }, JwtProvider: { jwks_uri: 'https://a.example/keys' } }[kind];
      return [kind, { required: { apiVersion: 'gateway/v1', kind, ...of(false), ...extra }, optional: of(true) }];
    }),
  );
}

/** Values of many forms, each of which some field takes. */
export const values: readonly unknown[] = parse(`
- [true, false, 0, 1, 2, 5, 100, 301, 60000, -1, 1.5, null, {}, []]
- ['', '/', '//', /a, /a/, '/a%20b', /a b, 'é', '*', a, A, 'a, b', ' ', GET, get, a.b, '[::1]', 'a:1', 'http://a', 'HTTP://A:1/', 'https://a/']
- [1s, 1.5m, 1m30s, '10', 200, 2xx, v3, grpc, http, 'bücher.example', '*.example.com', 'api.*', none, ietf, keep, least_request]
- ['2027-06-30', '2027-06-30T00:00Z', '2027-06-30T00:00:00.5+02:00', 'https://a.example/b?c', '/v1?x', DAY, Minute, user]
- [[a], [A, b], [GET], ['*'], ['https://a.example', '*'], ['http://a:1'], [503], [extension], [websocket], ['10.0.0.0/8', '::1'], ['fe80::1%eth0'], [authorization], [X-A, x-a]]
- [{ a: b }, { X-A: true }, { X-A: { value: a } }, { 'a b': c }, { a: [b, 1, true] }, { a: 1 }, { code: 503 }, { policy: round_robin }]
- [{ retry_on: '5xx, reset' }, { retry_on: ' ,5xx,' }, { retry_on: [5xx], per_try_timeout: 1s, per_try_timeout_ms: 5 }, { retry_on: retriable-status-codes, retriable_status_codes: [503] }]
- [[{ max_requests: 1 }], { max_requests: 1, priority: default }, [{}, {}], { health_check: { grpc: {} } }, [{ health_check: { http: { path: /a } } }], { health_check: { http: { path: /, hostname: 'a.b' }, grpc: {} } }]
- [{ cookie: a }, { header: a }, { cookie: a, header: b }, { cookie: a, ttl: 1h }, { ca: a }, { client_cert: a }, { client_cert: a, client_key: b }, { server_name: 'a:1' }]
- [{ origins: '*' }, { origins: 'https://a.example', max_age: '600' }, { origins: ['https://a.example'], credentials: true, max_age: 5, methods: 'GET, PUT' }]
- [{ gateway: [{ user: [a, remote_address, { remote_address: {} }, { generic_key: b }, { generic_key: { value: c } }] }] }, { gateway: [] }, { gateway: [{}] }, { gateway: [{ a: [{ method: { header: ':method' } }, { request_headers: { key: a, header_name: b } }, { x: { header: X, default: y }, z: { header: Z } }] }] }]
- [{ pattern: ^/a, substitution: /b }, { pattern: '(', substitution: '' }, [{ name: X-T, prefix: T }], [{ claim: a, header: X-B }], { keys: [] }, { keys: [{ kty: OKP, crv: Ed25519, x: 11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo }] }]
`).flat();
