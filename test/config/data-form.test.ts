/** The types of the data form of a configuration. The compiler checks this file; each comment marks an error that it must find. */
import assert from 'node:assert/strict';
import {
  type ConfigurationRecords,
  configurationFrom,
  type DescriptorInput,
  type MappingInput,
  type RecordInput,
} from '#config';

const record = { apiVersion: 'gateway/v1', name: 'a', prefix: '/a', service: 'orders' } as const;
const mapping = { ...record, kind: 'Mapping' } as const;
const auth = { apiVersion: 'gateway/v1', kind: 'AuthService', name: 'auth', auth_service: 'auth' } as const;
const limiter = { apiVersion: 'gateway/v1', kind: 'RateLimitService', name: 'limits', service: 'ratelimit' } as const;

const everything = {
  records: [
    {
      ...mapping,
      timeout_ms: 5000,
      method: undefined,
      headers: { 'X-Plan': 'gold', 'X-Trial': true },
      retry_policy: { retry_on: ['5xx', 'reset'], num_retries: 2, per_try_timeout: '1.5s' },
      circuit_breakers: [{ max_requests: 100 }],
      health_checks: { interval: '5s', timeout_ms: 100, health_check: { http: { path: '/health' } } },
      outlier_detection: { consecutive_5xx: 3 },
      load_balancer: { policy: 'least_request' },
      cors: { origins: 'https://a.example, https://b.example', methods: ['GET'], max_age: '600' },
      add_request_headers: { 'X-Served-By': 'gateway', 'X-Other': { value: 'x', append: false } },
      remove_request_headers: 'X-Debug',
      labels: {
        gateway: [
          { client: ['remote_address', { method: {} }] },
          { user: [{ 'x-user': { header: 'X-User', omit_if_not_present: true } }] },
          { mixed: [{ generic_key: 'a' }, { request_headers: { key: 'k', header_name: 'X-K' } }] },
        ],
      },
    },
    { ...mapping, name: 'b', prefix: '/b', host_redirect: true, redirect_response_code: 308 },
    {
      ...auth,
      default: true,
      status_on_error: { code: 403 },
      include_body: { max_bytes: 4096, allow_partial: true },
      allow_status: 200,
    },
    { ...limiter, headers: 'draft_03' },
    { apiVersion: 'gateway/v1', kind: 'Version', name: 'v1', prefix: '/v1', sunset: '2027-06-30' },
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'orders', annotations: { 'gateway.local/config': '' } },
      spec: { ports: [{ port: 80 }] },
    },
  ],
  limits: [
    {
      domain: 'gateway',
      descriptors: [
        {
          key: 'plan',
          value: 'free-*',
          descriptors: [
            {
              key: 'user',
              rate_limit: [
                { unit: 'minute', requests_per_unit: 10, name: 'short' },
                { unit: 'DAY', requests_per_unit: 1000, algorithm: 'token_bucket', burst: 20 },
              ],
            },
          ],
        },
        { key: 'internal', value: 1, rate_limit: { unlimited: true, replaces: [{ name: 'short' }] } },
      ],
    },
  ],
  users: [
    {
      name: 'ann',
      password_hash: '$scrypt$ln=1,r=1,p=1$AQEBAQEBAQEBAQEBAQEBAQ$5zTsCev1qjkwpfbFD0PmL8qfdSoT1LvwYVtfzR8ZrdQ',
      roles: ['admin'],
    },
  ],
  demo: { hotels: [{ id: 'a', stars: 4 }] },
} satisfies ConfigurationRecords;

const wrong: readonly RecordInput[] = [
  // @ts-expect-error: a misspelt field
  { ...mapping, time_out_ms: 5000 },
  // @ts-expect-error: the name of a field in camelCase
  { ...mapping, timeoutMs: 5000 },
  // @ts-expect-error: a duration where milliseconds are expected
  { ...mapping, timeout_ms: '5s' },
  // @ts-expect-error: a record without a required field
  { apiVersion: 'gateway/v1', kind: 'Mapping', name: 'a', prefix: '/a' },
  // @ts-expect-error: a field of another kind
  { ...auth, prefix: '/a' },
  // @ts-expect-error: a misspelt kind
  { ...record, kind: 'Maping' },
  // @ts-expect-error: another version
  { ...mapping, apiVersion: 'gateway/v2' },
  // @ts-expect-error: a field that has another name in records
  { ...auth, is_default: true },
  // @ts-expect-error: a value that is not one of the choices
  { ...limiter, headers: 'draft_3' },
];

const wrongInside: readonly MappingInput[] = [
  // @ts-expect-error: a misspelt field
  { ...mapping, retry_policy: { retry_on: 'reset', num_retry: 2 } },
  // @ts-expect-error: an unknown condition
  { ...mapping, retry_policy: { retry_on: ['rest'] } },
  // @ts-expect-error: a number where a duration is expected
  { ...mapping, retry_policy: { retry_on: 'reset', per_try_timeout: 1 } },
  // @ts-expect-error: a misspelt field
  { ...mapping, cors: { origins: '*', exposed_header: 'X-A' } },
  // @ts-expect-error: a misspelt field in a list of one
  { ...mapping, circuit_breakers: [{ max_request: 1 }] },
  // @ts-expect-error: a misspelt field two levels down
  { ...mapping, health_checks: { health_check: { http: { path: '/', host: 'a' } } } },
  // @ts-expect-error: a misspelt field of a label
  { ...mapping, labels: { gateway: [{ user: [{ 'x-user': { header: 'X-User', omit_if_not_presnt: true } }] }] } },
  // @ts-expect-error: a misspelt field of one of Ambassador's labels
  { ...mapping, labels: { gateway: [{ user: [{ remote_address: { kye: 'client' } }] }] } },
  // @ts-expect-error: a misspelt field
  { ...mapping, add_response_headers: { 'X-A': { value: 'x', appendd: false } } },
];

const wrongDescriptors: readonly DescriptorInput[] = [
  // @ts-expect-error: a misspelt field
  { key: 'k', rate_limit: { unit: 'day', request_per_unit: 1 } },
  // @ts-expect-error: a misspelt field in a list
  { key: 'k', rate_limit: [{ unit: 'day', requests_per_unit: 1, bursts: 1 }] },
  // @ts-expect-error: an unknown unit
  { key: 'k', rate_limit: { unit: 'fortnight', requests_per_unit: 1 } },
  // @ts-expect-error: a misspelt field of a descriptor inside another
  { key: 'k', descriptors: [{ key: 'l', shadow: true }] },
];

const otherWrong: readonly ConfigurationRecords[] = [
  // @ts-expect-error: a misspelt list
  { records: [], limit: [] },
  // @ts-expect-error: a misspelt field of a user
  { records: [], users: [{ name: 'ann', passwordHash: '' }] },
  // @ts-expect-error: an unknown role
  { records: [], users: [{ name: 'ann', password_hash: '', roles: ['administrator'] }] },
];

describe('the data form of a configuration', () => {
  it('accepts what its types accept', () => {
    assert.deepEqual(configurationFrom(everything).errors, []);
  });

  it('reports when it is used what its types reject', () => {
    for (const one of wrong) assert.notDeepEqual(configurationFrom({ records: [one] }).errors, [], JSON.stringify(one));
    for (const one of wrongInside) assert.equal(configurationFrom({ records: [one] }).errors.length, 1);
    for (const descriptor of wrongDescriptors) {
      const limits = [{ domain: 'd', descriptors: [descriptor] }];
      assert.equal(configurationFrom({ records: [], limits }).errors.length, 1);
    }
    for (const one of otherWrong) assert.notDeepEqual(configurationFrom(one).errors, [], JSON.stringify(one));
  });

  it('accepts a frozen record, and the same object for several desks', () => {
    const records: readonly RecordInput[] = Object.freeze([Object.freeze(mapping)]);
    for (const _ of [1, 2]) assert.deepEqual(configurationFrom({ records }).errors, []);
  });
});
