/** Gateway records as people write them, and what they become; the golden files have those that are refused. */
import assert from 'node:assert/strict';
import { type AuthService, configurationFrom, type Mapping, mappingDefaults, type RateLimitService } from '#config';

const source = { file: '<options>', line: 1 };
const head = { apiVersion: 'gateway/v1', name: 'one' };
const mapping = { ...head, kind: 'Mapping', prefix: '/v1/hotels', service: 'hotel' };
const authService = { ...head, kind: 'AuthService', auth_service: 'auth' };
const rateLimitService = { ...head, kind: 'RateLimitService', service: 'ratelimit' };

function read(...records: readonly object[]) {
  const { configuration, errors } = configurationFrom({ records });
  assert.deepEqual(errors, []);
  return configuration;
}

/** The one record that `record` becomes. */
function recordFrom(record: object): object {
  const { mappings, authServices, rateLimitServices } = read(record);
  const [first, ...others] = [...mappings, ...authServices, ...rateLimitServices];
  assert.ok(first && others.length === 0);
  return first;
}

/** A case for one record: the fields that are written, and those of the record that they decide. */
function checker<Read>(base: object) {
  return (written: object, expected: Partial<Read>) =>
    it(`reads ${JSON.stringify(written)}`, () => {
      const found = recordFrom({ ...base, ...written });
      const values = Object.keys(expected).map((key) => [key, Reflect.get(found, key)]);
      assert.deepEqual(Object.fromEntries(values), expected);
    });
}

const nameOf = ({ name }: { readonly name: string }) => name;

describe('a Mapping', () => {
  const check = checker<Mapping>(mapping);

  it('has the default of every field that is not written', () => {
    const { kind, name, prefix, service } = mapping;
    assert.deepEqual(recordFrom(mapping), { ...mappingDefaults, kind, name, prefix, service, source });
  });

  check({ prefix: '/v1/hotels/' }, { prefix: '/v1/hotels' });
  check({ prefix: '/' }, { prefix: '/' });
  check({ prefix_exact: true }, { prefixMatch: 'exact', rewrite: '/' });
  check({ prefix: '/v[0-9]+/', prefix_regex: true }, { prefix: '/v[0-9]+/', prefixMatch: 'regex', rewrite: '' });
  check({ case_sensitive: false, precedence: -3 }, { caseSensitive: false, precedence: -3 });
  check({ rewrite: '' }, { rewrite: '' });
  check({ rewrite: '/inn/' }, { rewrite: '/inn' });
  check(
    { regex_rewrite: { pattern: '^/v1/(.*)$', substitution: '/\\1' } },
    { regexRewrite: { pattern: '^/v1/(.*)$', substitution: '/\\1' } },
  );

  check({ host: 'API.example.com' }, { host: { kind: 'exact', value: 'api.example.com' } });
  check({ host: '.*[.]example', host_regex: true }, { host: { kind: 'regex', pattern: '.*[.]example' } });
  check({ hostname: 'api.example' }, { host: { kind: 'exact', value: 'api.example' } });
  check({ hostname: '*.Example.com' }, { host: { kind: 'suffix', value: '.example.com' } });
  check({ hostname: 'api.*' }, { host: { kind: 'prefix', value: 'api.' } });
  check({ hostname: '*' }, { host: undefined });
  check({ method: 'GET' }, { method: { kind: 'exact', value: 'GET' } });
  check({ method: 'GET|HEAD', method_regex: true }, { method: { kind: 'regex', pattern: 'GET|HEAD' } });
  check(
    { headers: { 'X-Plan': 'gold', 'X-Trial': true }, regex_headers: { 'X-Plan': 'go.*' } },
    {
      headers: [
        { name: 'x-plan', match: { kind: 'exact', value: 'gold' } },
        { name: 'x-trial', match: { kind: 'present' } },
        { name: 'x-plan', match: { kind: 'regex', pattern: 'go.*' } },
      ],
    },
  );
  check(
    { query_parameters: { Plan: 'gold', trial: true }, regex_query_parameters: { page: '[0-9]+' } },
    {
      queryParameters: [
        { name: 'Plan', match: { kind: 'exact', value: 'gold' } },
        { name: 'trial', match: { kind: 'present' } },
        { name: 'page', match: { kind: 'regex', pattern: '[0-9]+' } },
      ],
    },
  );

  check({ service: 'https://hotel.example:8443' }, { service: 'https://hotel.example:8443' });
  check({ host_rewrite: 'inn.example:8080', bypass_auth: true }, { hostRewrite: 'inn.example:8080', bypassAuth: true });
  check({ load_balancer: { policy: 'least_request' } }, { loadBalancer: 'least_request' });
  check(
    { timeout_ms: 0, connect_timeout_ms: 250, idle_timeout_ms: 0 },
    { timeoutMs: 0, connectTimeoutMs: 250, idleTimeoutMs: 0 },
  );
  check({ allow_upgrade: ['WebSocket'] }, { allowUpgrade: ['websocket'] });

  check(
    { service: 'https://www.example:8443', host_redirect: true },
    { redirect: { host: 'www.example:8443', path: undefined, status: 301 } },
  );
  check(
    { path_redirect: '/gone/', redirect_response_code: 308 },
    { redirect: { host: undefined, path: { kind: 'path', value: '/gone/' }, status: 308 } },
  );
  check(
    { service: 'inn.example', host_redirect: true, prefix_redirect: '/v2/' },
    { redirect: { host: 'inn.example', path: { kind: 'prefix', value: '/v2' }, status: 301 } },
  );
  check(
    { regex_redirect: { pattern: '^/v1/', substitution: '/v2/' } },
    { redirect: { host: undefined, path: { kind: 'regex', pattern: '^/v1/', substitution: '/v2/' }, status: 301 } },
  );

  const retriable = ['connect-failure', 'retriable-status-codes'] as const;
  check(
    { retry_policy: { retry_on: retriable.join(', '), per_try_timeout: '1.5s', retriable_status_codes: [503] } },
    { retryPolicy: { retryOn: retriable, numRetries: 1, perTryTimeoutMs: 1500, statusCodes: [503] } },
  );
  for (const breaker of [{ max_requests: 10 }, [{ priority: 'default', max_requests: 10 }]])
    check(
      { circuit_breakers: breaker },
      { circuitBreakers: { maxConnections: 1024, maxPendingRequests: 1024, maxRequests: 10, maxRetries: 3 } },
    );
  const expectedStatuses = [{ min: 200, max: 299 }];
  const http = { path: '/health', expected_statuses: expectedStatuses };
  const healthCheck = { path: '/health', hostname: undefined, timeoutMs: 3000, intervalMs: 90_000, expectedStatuses };
  check(
    { health_checks: [{ interval: '1m30s', health_check: { http } }] },
    { healthCheck: { ...healthCheck, unhealthyThreshold: 2, healthyThreshold: 1 } },
  );
  check(
    { outlier_detection: { consecutive_5xx: 0 } },
    { outlierDetection: { consecutive5xx: 0, baseEjectionTimeMs: 30_000, maxEjectionPercent: 50 } },
  );

  const origins = ['https://a.example', 'https://b.example'];
  const methods = ['GET', 'HEAD', 'POST'];
  check(
    { cors: { origins: origins.join(', '), headers: 'X-Plan', credentials: true, max_age: '600' } },
    { cors: { origins, methods, headers: ['x-plan'], exposedHeaders: [], credentials: true, maxAgeSeconds: 600 } },
  );
  check(
    {
      add_request_headers: { 'X-One': 'a', 'X-Two': { value: 'b', append: false } },
      remove_request_headers: 'X-Three',
    },
    {
      requestHeaders: {
        add: [
          { name: 'x-one', value: 'a', append: true },
          { name: 'x-two', value: 'b', append: false },
        ],
        remove: ['x-three'],
      },
    },
  );
  check(
    { remove_response_headers: ['X-Four', 'x-five'] },
    { responseHeaders: { add: [], remove: ['x-four', 'x-five'] } },
  );

  it('has labels by domain and group, in the order in which they are written', () => {
    const labels = { gateway: [{ b: ['two', 'remote_address'] }, { a: ['one'] }], other: [] };
    const found = Object.entries(read({ ...mapping, labels }).mappings[0]?.labels ?? {});
    assert.deepEqual(
      found.map(([domain, groups]) => [domain, ...groups.map((group) => [group.name, ...group.labels.map(nameOf)])]),
      [['gateway', ['b', 'generic_key', 'remote_address'], ['a', 'generic_key']], ['other']],
    );
  });

  const whenMissing = { omitIfNotPresent: false, default: '' };
  for (const [written, expected] of [
    ['remote_address', { kind: 'remote_address', name: 'remote_address' }],
    ['catalog', { kind: 'generic_key', name: 'generic_key', value: 'catalog' }],
    [{ generic_key: 'one' }, { kind: 'generic_key', name: 'generic_key', value: 'one' }],
    [{ generic_key: { key: 'two', value: 'three' } }, { kind: 'generic_key', name: 'two', value: 'three' }],
    [{ source_cluster: { key: 'from' } }, { kind: 'source_cluster', name: 'from' }],
    [{ destination_cluster: {} }, { kind: 'destination_cluster', name: 'destination_cluster' }],
    [{ method: {} }, { kind: 'method', name: 'method' }],
    [{ path: { key: 'where' } }, { kind: 'path', name: 'where' }],
    [{ verb: { header: ':method' } }, { kind: 'method', name: 'verb' }],
    [{ target: { header: ':path' } }, { kind: 'path', name: 'target' }],
    [{ site: { header: ':authority' } }, { kind: 'header', name: 'site', header: 'host', ...whenMissing }],
    [{ header: { header: 'X-A' } }, { kind: 'header', name: 'header', header: 'x-a', ...whenMissing }],
    [
      { plan: { header: 'X-Plan', default: 'free' } },
      { kind: 'header', name: 'plan', header: 'x-plan', omitIfNotPresent: false, default: 'free' },
    ],
    ...[
      { plan: { header: 'X-Plan', omit_if_not_present: true } },
      { request_headers: { key: 'plan', header_name: 'X-Plan', omit_if_not_present: true } },
    ].map((label) => [label, { kind: 'header', name: 'plan', header: 'x-plan', omitIfNotPresent: true, default: '' }]),
  ])
    it(`has the label ${JSON.stringify(written)}, in the words of any release of Ambassador`, () => {
      const labels = { gateway: [{ group: [written] }] };
      assert.deepEqual(read({ ...mapping, labels }).mappings[0]?.labels['gateway']?.[0]?.labels, [expected]);
    });
});

describe('an AuthService', () => {
  const check = checker<AuthService>(authService);

  it('has these defaults: it fails closed', () => {
    assert.deepEqual(recordFrom(authService), {
      kind: 'AuthService',
      name: 'one',
      authService: 'auth',
      proto: 'http',
      isDefault: true,
      pathPrefix: '',
      allowedRequestHeaders: [],
      allowedAuthorizationHeaders: [],
      addAuthHeaders: [],
      includeBody: undefined,
      timeoutMs: 5000,
      statusOnError: 503,
      failureModeAllow: false,
      cacheMs: 0,
      source,
    });
  });

  check({ allowed_authorization_headers: ['X-User', 'x-plan'] }, { allowedAuthorizationHeaders: ['x-user', 'x-plan'] });
  check({ timeout_ms: 200, status_on_error: { code: 403 } }, { timeoutMs: 200, statusOnError: 403 });
  check({ failure_mode_allow: true, default: false }, { failureModeAllow: true, isDefault: false });
  check(
    { path_prefix: '/extauth/', allowed_request_headers: ['X-Api-Key'] },
    { pathPrefix: '/extauth', allowedRequestHeaders: ['x-api-key'] },
  );
  check({ add_auth_headers: { 'X-By': 'gateway' } }, { addAuthHeaders: [{ name: 'x-by', value: 'gateway' }] });
  check(
    { include_body: { max_bytes: 4096, allow_partial: true } },
    { includeBody: { maxBytes: 4096, allowPartial: true } },
  );

  const staff = { ...authService, name: 'staff', default: false };
  const named = { ...mapping, auth_service: 'staff' };

  it('may stand beside the default one, for the mappings that name it', () => {
    const { authServices, mappings } = read(authService, staff, named);
    assert.deepEqual(authServices.map(nameOf), ['one', 'staff']);
    assert.equal(mappings[0]?.authService, 'staff');
  });

  it('does not replace one that is broken or missing: the mapping is left out', () => {
    const broken = { ...authService, timeout_ms: 'soon' };
    const other = { ...mapping, name: 'two', prefix: '/v2', auth_service: 'one' };
    const { configuration, errors } = configurationFrom({ records: [broken, staff, mapping, other] });
    assert.deepEqual(configuration.mappings, []);
    assert.deepEqual(
      errors.map(({ record, message }) => `${record}: ${message}`),
      [
        'AuthService one: timeout_ms must be a number, not a string',
        'Mapping one: names no auth_service, and no AuthService is the default',
        'Mapping two: there is no AuthService "one"',
      ],
    );
  });

  it('needs no default where each mapping names one, bypasses it or redirects', () => {
    const open = { ...mapping, name: 'two', prefix: '/v2', bypass_auth: true };
    const gone = { ...mapping, name: 'three', prefix: '/v3', path_redirect: '/v2' };
    assert.equal(read(staff, named, open, gone).mappings.length, 3);
  });
});

describe('a RateLimitService', () => {
  const check = checker<RateLimitService>(rateLimitService);

  it('has these defaults: it fails open', () => {
    const standard = 'ratelimit-limit ratelimit-remaining ratelimit-reset';
    const older = 'x-ratelimit-limit x-ratelimit-remaining x-ratelimit-reset';
    assert.deepEqual(recordFrom(rateLimitService), {
      kind: 'RateLimitService',
      name: 'one',
      service: 'ratelimit',
      domain: 'gateway',
      timeoutMs: 100,
      failureModeDeny: false,
      headers: 'ietf',
      allowedResponseHeaders: `${standard} ${older}`.split(' '),
      source,
    });
  });

  check({ service: 'grpc://10.0.0.5:8081', domain: 'edge' }, { service: 'grpc://10.0.0.5:8081', domain: 'edge' });
  check({ timeout_ms: 20, failure_mode_deny: true }, { timeoutMs: 20, failureModeDeny: true });
  check(
    { headers: 'draft_03', allowed_response_headers: ['X-Plan'] },
    { headers: 'draft_03', allowedResponseHeaders: ['x-plan'] },
  );
});
