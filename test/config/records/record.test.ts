/** Gateway records as people write them, and what they become; what is refused is in the golden files. */
import assert from 'node:assert/strict';
import { configurationFrom, type Mapping, mappingDefaults } from '#config';

function read(...records: readonly unknown[]) {
  const { configuration, errors } = configurationFrom({ records });
  assert.deepEqual(errors, []);
  return configuration;
}

const head = { apiVersion: 'gateway/v1', name: 'one' };
const source = { file: '<options>', line: 1 };

describe('a Mapping', () => {
  const mapping = { ...head, kind: 'Mapping', prefix: '/v1/hotels', service: 'hotel' };

  function mappingOf(fields: object) {
    return read({ ...mapping, ...fields }).mappings[0];
  }

  function check(title: string, fields: object, expected: Partial<Mapping>): void {
    it(title, () => {
      const given = mappingOf(fields);
      assert.deepEqual(
        Object.fromEntries(Object.keys(expected).map((key) => [key, Reflect.get(given ?? {}, key)])),
        expected,
      );
    });
  }

  it('has these defaults', () => {
    assert.deepEqual(mappingOf({}), {
      ...mappingDefaults,
      kind: 'Mapping',
      name: 'one',
      prefix: '/v1/hotels',
      service: 'hotel',
      source,
    });
  });

  check(
    'keeps the plain fields that are given',
    {
      rewrite: '',
      service: 'https://hotel.example:8443',
      host_rewrite: 'inn.example:8080',
      precedence: -3,
      bypass_auth: true,
      load_balancer: { policy: 'least_request' },
    },
    {
      rewrite: '',
      service: 'https://hotel.example:8443',
      hostRewrite: 'inn.example:8080',
      precedence: -3,
      bypassAuth: true,
      loadBalancer: 'least_request',
    },
  );
  check(
    'has timeouts, of which 0 is none',
    { timeout_ms: 0, connect_timeout_ms: 250, idle_timeout_ms: 0 },
    { timeoutMs: 0, connectTimeoutMs: 250, idleTimeoutMs: 0 },
  );
  check('may match the path alone', { prefix_exact: true }, { prefixMatch: 'exact', rewrite: '/' });
  check(
    'may match the whole path by a regex, and leaves it alone then',
    { prefix: '/v[0-9]+/hotels/', prefix_regex: true },
    { prefix: '/v[0-9]+/hotels/', prefixMatch: 'regex', rewrite: '' },
  );
  check('may match in any case', { case_sensitive: false }, { caseSensitive: false });
  check('may be of one host', { host: 'API.example.com' }, { host: { kind: 'exact', value: 'api.example.com' } });
  check(
    'may be of hosts by a regex',
    { host: '.*[.]example', host_regex: true },
    { host: { kind: 'regex', pattern: '.*[.]example' } },
  );
  check(
    'may be of hosts below one',
    { hostname: '*.Example.com' },
    { host: { kind: 'suffix', value: '.example.com' } },
  );
  check('may be of hosts of one start', { hostname: 'api.*' }, { host: { kind: 'prefix', value: 'api.' } });
  check('may be of one hostname', { hostname: 'api.example' }, { host: { kind: 'exact', value: 'api.example' } });
  check('is of any host with a star', { hostname: '*' }, { host: undefined });
  check('may be of one method', { method: 'GET' }, { method: { kind: 'exact', value: 'GET' } });
  check(
    'may be of methods by a regex',
    { method: 'GET|HEAD', method_regex: true },
    { method: { kind: 'regex', pattern: 'GET|HEAD' } },
  );
  check(
    'may ask for headers, in lower case',
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
    'may ask for query parameters, as they are written',
    { query_parameters: { Plan: 'gold', trial: true }, regex_query_parameters: { page: '[0-9]+' } },
    {
      queryParameters: [
        { name: 'Plan', match: { kind: 'exact', value: 'gold' } },
        { name: 'trial', match: { kind: 'present' } },
        { name: 'page', match: { kind: 'regex', pattern: '[0-9]+' } },
      ],
    },
  );
  check(
    'may rewrite by a regex',
    { regex_rewrite: { pattern: '^/v1/(.*)$', substitution: '/\\1' } },
    { regexRewrite: { pattern: '^/v1/(.*)$', substitution: '/\\1' } },
  );
  check(
    'may redirect to the host of its service',
    { service: 'https://www.example:8443', host_redirect: true },
    { redirect: { host: 'www.example:8443', path: undefined, status: 301 } },
  );
  check(
    'may redirect to a path, and to another prefix at another host',
    { path_redirect: '/gone/', redirect_response_code: 308 },
    { redirect: { host: undefined, path: { kind: 'path', value: '/gone/' }, status: 308 } },
  );
  check(
    'may redirect to another prefix at another host',
    { service: 'inn.example', host_redirect: true, prefix_redirect: '/v2/' },
    { redirect: { host: 'inn.example', path: { kind: 'prefix', value: '/v2' }, status: 301 } },
  );
  check(
    'may redirect by a regex',
    { regex_redirect: { pattern: '^/v1/', substitution: '/v2/' } },
    { redirect: { host: undefined, path: { kind: 'regex', pattern: '^/v1/', substitution: '/v2/' }, status: 301 } },
  );
  check(
    'may retry, with conditions as Envoy writes them',
    {
      retry_policy: {
        retry_on: 'connect-failure, retriable-status-codes',
        per_try_timeout: '1.5s',
        retriable_status_codes: [503],
      },
    },
    {
      retryPolicy: {
        retryOn: ['connect-failure', 'retriable-status-codes'],
        numRetries: 1,
        perTryTimeoutMs: 1500,
        statusCodes: [503],
      },
    },
  );
  check(
    'may have circuit breakers, as a list of one or a map',
    { circuit_breakers: [{ priority: 'default', max_requests: 10 }] },
    { circuitBreakers: { maxConnections: 1024, maxPendingRequests: 1024, maxRequests: 10, maxRetries: 3 } },
  );
  check(
    'may check the health of its service',
    {
      health_checks: [
        { interval: '1m30s', health_check: { http: { path: '/health', expected_statuses: [{ min: 200, max: 299 }] } } },
      ],
    },
    {
      healthCheck: {
        path: '/health',
        hostname: undefined,
        timeoutMs: 3000,
        intervalMs: 90_000,
        unhealthyThreshold: 2,
        healthyThreshold: 1,
        expectedStatuses: [{ min: 200, max: 299 }],
      },
    },
  );
  check(
    'may leave out failing addresses',
    { outlier_detection: { consecutive_5xx: 0 } },
    { outlierDetection: { consecutive5xx: 0, baseEjectionTimeMs: 30_000, maxEjectionPercent: 50 } },
  );
  check(
    'may be used from browsers',
    { cors: { origins: 'https://a.example, https://b.example', headers: 'X-Plan', credentials: true, max_age: '600' } },
    {
      cors: {
        origins: ['https://a.example', 'https://b.example'],
        methods: ['GET', 'HEAD', 'POST'],
        headers: ['x-plan'],
        exposedHeaders: [],
        credentials: true,
        maxAgeSeconds: 600,
      },
    },
  );
  check(
    'may change headers',
    {
      add_request_headers: { 'X-One': 'a', 'X-Two': { value: 'b', append: false } },
      remove_request_headers: 'X-Three',
      remove_response_headers: ['X-Four', 'x-five'],
    },
    {
      requestHeaders: {
        add: [
          { name: 'x-one', value: 'a', append: true },
          { name: 'x-two', value: 'b', append: false },
        ],
        remove: ['x-three'],
      },
      responseHeaders: { add: [], remove: ['x-four', 'x-five'] },
    },
  );
  check('may let connections be switched', { allow_upgrade: ['WebSocket'] }, { allowUpgrade: ['websocket'] });

  it('has its prefix and rewrite without the slash at the end, but for / itself', () => {
    const prefixes = ['/v1/hotels/', '/v1/hotels', '/'].map(
      (prefix) => read({ ...mapping, prefix }).mappings[0]?.prefix,
    );
    assert.deepEqual(prefixes, ['/v1/hotels', '/v1/hotels', '/']);
    assert.equal(read({ ...mapping, rewrite: '/inn/' }).mappings[0]?.rewrite, '/inn');
  });

  it('has labels by domain, in the order given, with header names in lower case', () => {
    const labels = {
      gateway: [
        {
          user: [
            { 'x-travel-user': { header: 'X-Travel-User', omit_if_not_present: true } },
            { 'x-plan': { header: 'X-Plan', default: 'free' } },
          ],
        },
        { test_allow: [{ 'x-allow': { header: 'x-allow' } }] },
      ],
      other: [],
    };
    assert.deepEqual(read({ ...mapping, labels }).mappings[0]?.labels, {
      gateway: [
        {
          name: 'user',
          labels: [
            { kind: 'header', name: 'x-travel-user', header: 'x-travel-user', omitIfNotPresent: true, default: '' },
            { kind: 'header', name: 'x-plan', header: 'x-plan', omitIfNotPresent: false, default: 'free' },
          ],
        },
        {
          name: 'test_allow',
          labels: [{ kind: 'header', name: 'x-allow', header: 'x-allow', omitIfNotPresent: false, default: '' }],
        },
      ],
      other: [],
    });
  });

  it('has labels in the words of every release of Ambassador', () => {
    const group = [
      'remote_address',
      'catalog',
      { source_cluster: { key: 'from' } },
      { destination_cluster: {} },
      { request_headers: { key: 'plan', header_name: 'X-Plan', omit_if_not_present: true } },
      { generic_key: 'one' },
      { generic_key: { key: 'two', value: 'three' } },
      { method: {} },
      { path: { key: 'where' } },
      { verb: { header: ':method' } },
      { target: { header: ':path' } },
      { site: { header: ':authority' } },
    ];
    const given = mappingOf({ labels: { gateway: [{ group }] } });
    const whenMissing = { omitIfNotPresent: false, default: '' };
    assert.deepEqual(given?.labels['gateway']?.[0]?.labels, [
      { kind: 'remote_address', name: 'remote_address' },
      { kind: 'generic_key', name: 'generic_key', value: 'catalog' },
      { kind: 'source_cluster', name: 'from' },
      { kind: 'destination_cluster', name: 'destination_cluster' },
      { kind: 'header', name: 'plan', header: 'x-plan', omitIfNotPresent: true, default: '' },
      { kind: 'generic_key', name: 'generic_key', value: 'one' },
      { kind: 'generic_key', name: 'two', value: 'three' },
      { kind: 'method', name: 'method' },
      { kind: 'path', name: 'where' },
      { kind: 'method', name: 'verb' },
      { kind: 'path', name: 'target' },
      { kind: 'header', name: 'site', header: 'host', ...whenMissing },
    ]);
  });

  it('may have a label that is named header', () => {
    const labels = { gateway: [{ group: [{ header: { header: 'X-A' } }] }] };
    assert.equal(read({ ...mapping, labels }).mappings[0]?.labels['gateway']?.[0]?.labels[0]?.name, 'header');
  });
});

describe('an AuthService', () => {
  const auth = { ...head, kind: 'AuthService', auth_service: 'auth' };

  it('has these defaults: it fails closed', () => {
    assert.deepEqual(read(auth).authServices, [
      {
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
      },
    ]);
  });

  it('keeps every field that is given, with header names in lower case', () => {
    const [given] = read({
      ...auth,
      proto: 'http',
      allowed_authorization_headers: ['X-Travel-User', 'x-plan'],
      timeout_ms: 200,
      status_on_error: { code: 403 },
      failure_mode_allow: true,
      default: false,
      path_prefix: '/extauth/',
      allowed_request_headers: ['X-Api-Key'],
      add_auth_headers: { 'X-Asked-By': 'gateway' },
      include_body: { max_bytes: 4096, allow_partial: true },
    }).authServices;
    assert.deepEqual(
      [given?.isDefault, given?.pathPrefix, given?.allowedRequestHeaders, given?.addAuthHeaders, given?.includeBody],
      [
        false,
        '/extauth',
        ['x-api-key'],
        [{ name: 'x-asked-by', value: 'gateway' }],
        { maxBytes: 4096, allowPartial: true },
      ],
    );
    assert.deepEqual(
      [given?.allowedAuthorizationHeaders, given?.timeoutMs, given?.statusOnError, given?.failureModeAllow],
      [['x-travel-user', 'x-plan'], 200, 403, true],
    );
  });
});

describe('several AuthServices', () => {
  const auth = { ...head, kind: 'AuthService', auth_service: 'auth' };
  const mapping = { ...head, kind: 'Mapping', prefix: '/v1/hotels', service: 'hotel' };
  const staff = { ...auth, name: 'staff', default: false };

  it('are the default one and those that mappings name', () => {
    const { authServices, mappings } = read(auth, staff, { ...mapping, auth_service: 'staff' });
    assert.deepEqual(
      authServices.map(({ name, isDefault }) => [name, isDefault]),
      [
        ['one', true],
        ['staff', false],
      ],
    );
    assert.equal(mappings[0]?.authService, 'staff');
  });

  it('never stand in for one that is broken or not there: the mapping is left out', () => {
    const broken = { ...auth, timeout_ms: 'soon' };
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

  it('may be without a default where each mapping names one, bypasses or redirects', () => {
    const named = { ...mapping, auth_service: 'staff' };
    const open = { ...mapping, name: 'two', prefix: '/v2', bypass_auth: true };
    const gone = { ...mapping, name: 'three', prefix: '/v3', path_redirect: '/v2' };
    assert.equal(read(staff, named, open, gone).mappings.length, 3);
  });
});

describe('a RateLimitService', () => {
  const limit = { ...head, kind: 'RateLimitService', service: 'ratelimit' };

  it('has these defaults: it fails open', () => {
    assert.deepEqual(read(limit).rateLimitServices, [
      {
        kind: 'RateLimitService',
        name: 'one',
        service: 'ratelimit',
        domain: 'gateway',
        timeoutMs: 100,
        failureModeDeny: false,
        headers: 'ietf',
        allowedResponseHeaders: [
          'ratelimit-limit',
          'ratelimit-remaining',
          'ratelimit-reset',
          'x-ratelimit-limit',
          'x-ratelimit-remaining',
          'x-ratelimit-reset',
        ],
        source,
      },
    ]);
  });

  it('keeps every field that is given', () => {
    const [given] = read({
      ...limit,
      service: 'grpc://10.0.0.5:8081',
      domain: 'edge',
      timeout_ms: 20,
      failure_mode_deny: true,
      headers: 'draft_03',
      allowed_response_headers: ['X-Plan'],
    }).rateLimitServices;
    assert.deepEqual(
      [given?.service, given?.domain, given?.timeoutMs, given?.failureModeDeny],
      ['grpc://10.0.0.5:8081', 'edge', 20, true],
    );
    assert.deepEqual([given?.headers, given?.allowedResponseHeaders], ['draft_03', ['x-plan']]);
  });
});
