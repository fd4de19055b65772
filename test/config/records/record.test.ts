/** Tests that valid records are read correctly. The golden files cover invalid ones. */
import assert from 'node:assert/strict';
import { parse } from 'yaml';
import { configurationFrom, mappingDefaults } from '#config';
import { authRecordOf } from '../../support/edge.ts';
import { untyped } from '../../support/untyped.ts';

const source = { file: '<options>', line: 1 };
const head = { apiVersion: 'gateway/v1', name: 'one' };
const mapping = { ...head, kind: 'Mapping', prefix: '/v1/hotels', service: 'hotel' };
const authService = { ...head, kind: 'AuthService', auth_service: 'auth' };
const rateLimitService = { ...head, kind: 'RateLimitService', service: 'ratelimit' };
const version = { ...head, kind: 'Version', prefix: '/v1' };

function read(...records: readonly object[]) {
  const { configuration, errors } = configurationFrom(untyped({ records }));
  assert.deepEqual(errors, []);
  return configuration;
}

/** Reads `record`, which must be valid. */
function recordFrom(record: object): object {
  const { mappings, authServices, rateLimitServices, versions } = read(record);
  const [first, ...others] = [...mappings, ...authServices, ...rateLimitServices, ...versions];
  assert.ok(first && others.length === 0);
  return first;
}

/** Each line has the given fields and, after the arrow, the resulting fields of the record, both in YAML. */
function check(base: object, lines: string): void {
  for (const line of lines.trim().split('\n')) {
    const [written = '', decided = ''] = line.trim().split(/ +-> +/);
    it(`reads ${written}`, () => {
      const found = recordFrom({ ...base, ...parse(`{${written}}`) });
      const expected = parse(`{${decided}}`);
      const values = Object.keys(expected).map((key) => [key, Reflect.get(found, key) ?? null]);
      assert.deepEqual(JSON.parse(JSON.stringify(Object.fromEntries(values))), expected);
    });
  }
}

describe('a Mapping', () => {
  it('has defaults for all optional fields', () => {
    const { kind, name, prefix, service } = mapping;
    assert.deepEqual(recordFrom(mapping), { ...mappingDefaults, kind, name, prefix, service, source });
  });

  check(
    mapping,
    String.raw`
    prefix: /v1/hotels/                               -> prefix: /v1/hotels
    prefix: /                                         -> prefix: /
    prefix_exact: true                                -> prefixMatch: exact, rewrite: /
    prefix: '/v[0-9]+/', prefix_regex: true           -> prefix: '/v[0-9]+/', prefixMatch: regex, rewrite: ''
    case_sensitive: false, precedence: -3             -> caseSensitive: false, precedence: -3
    rewrite: ''                                       -> rewrite: ''
    rewrite: /inn/                                    -> rewrite: /inn
    regex_rewrite: { pattern: '^/v1/(.*)$', substitution: '/\1' } -> regexRewrite: { pattern: '^/v1/(.*)$', substitution: '/\1' }
    host: API.example.com                             -> host: { kind: exact, value: api.example.com }
    host: Bücher.EXAMPLE                              -> host: { kind: exact, value: xn--bcher-kva.example }
    hostname: '*.bücher.example'                      -> host: { kind: suffix, value: .xn--bcher-kva.example }
    host: '.*[.]example', host_regex: true            -> host: { kind: regex, pattern: '.*[.]example' }
    hostname: api.example                             -> host: { kind: exact, value: api.example }
    hostname: '*.Example.com'                         -> host: { kind: suffix, value: .example.com }
    hostname: api.*                                   -> host: { kind: prefix, value: api. }
    hostname: '*'                                     -> host: null
    method: GET                                       -> method: { kind: exact, value: GET }
    method: GET|HEAD, method_regex: true              -> method: { kind: regex, pattern: GET|HEAD }
    headers: { X-Plan: gold, X-Trial: true }          -> headers: [{ name: x-plan, match: { kind: exact, value: gold } }, { name: x-trial, match: { kind: present } }]
    headers: { a: b }, regex_headers: { X-P: go.* }   -> headers: [{ name: a, match: { kind: exact, value: b } }, { name: x-p, match: { kind: regex, pattern: go.* } }]
    query_parameters: { Plan: gold, trial: true }     -> queryParameters: [{ name: Plan, match: { kind: exact, value: gold } }, { name: trial, match: { kind: present } }]
    regex_query_parameters: { page: '[0-9]+' }        -> queryParameters: [{ name: page, match: { kind: regex, pattern: '[0-9]+' } }]
    service: https://hotel.example:8443               -> service: https://hotel.example:8443
    host_rewrite: inn.example:8080, bypass_auth: true -> hostRewrite: inn.example:8080, bypassAuth: true
    load_balancer: { policy: least_request }          -> loadBalancer: least_request
    timeout_ms: 0, connect_timeout_ms: 250, idle_timeout_ms: 0 -> timeoutMs: 0, connectTimeoutMs: 250, idleTimeoutMs: 0
    allow_upgrade: [WebSocket]                        -> allowUpgrade: [websocket]
    service: https://www.example:8443, host_redirect: true -> redirect: { scheme: https, host: www.example, port: 8443, status: 301 }
    service: http://www.example, host_redirect: true   -> redirect: { host: www.example, status: 301 }
    path_redirect: /gone/, redirect_response_code: 308 -> redirect: { path: { kind: path, value: /gone/ }, status: 308 }
    host_redirect: true, prefix_redirect: /v2/        -> redirect: { host: hotel, path: { kind: prefix, value: /v2 }, status: 301 }
    regex_redirect: { pattern: ^/v1/, substitution: /v2/ } -> redirect: { path: { kind: regex, pattern: ^/v1/, substitution: /v2/ }, status: 301 }
    retry_policy: { retry_on: 'reset, 5xx', per_try_timeout: 1.5s } -> retryPolicy: { retryOn: [reset, 5xx], numRetries: 1, perTryTimeoutMs: 1500, statusCodes: [] }
    retry_policy: { retry_on: [retriable-status-codes], retriable_status_codes: [503] } -> retryPolicy: { retryOn: [retriable-status-codes], numRetries: 1, statusCodes: [503] }
    circuit_breakers: { max_requests: 10 }            -> circuitBreakers: { maxConnections: 1024, maxPendingRequests: 1024, maxRequests: 10, maxRetries: 3, maxUpgrades: 10000 }
    circuit_breakers: [{ priority: default, max_retries: 0 }] -> circuitBreakers: { maxConnections: 1024, maxPendingRequests: 1024, maxRequests: 1024, maxRetries: 0, maxUpgrades: 10000 }
    health_checks: [{ interval: 1m30s, health_check: { http: { path: /h, expected_statuses: [{ min: 200, max: 299 }] } } }] -> healthCheck: { path: /h, timeoutMs: 3000, intervalMs: 90000, expectedStatuses: [{ min: 200, max: 299 }], unhealthyThreshold: 2, healthyThreshold: 1 }
    grpc: true                                        -> grpc: true, rewrite: ''
    grpc: true, rewrite: /a                           -> grpc: true, rewrite: /a
    grpc: true, retry_policy: { retry_on: 'connect-failure, unavailable' } -> grpc: true, rewrite: '', retryPolicy: { retryOn: [connect-failure, unavailable], numRetries: 1, statusCodes: [] }
    grpc: true, health_checks: { health_check: { grpc: { upstream_name: a.B, authority: a.example } } } -> grpc: true, rewrite: '', healthCheck: { grpc: { service: a.B }, path: /grpc.health.v1.Health/Check, hostname: a.example, timeoutMs: 3000, intervalMs: 5000, expectedStatuses: [{ min: 200, max: 200 }], unhealthyThreshold: 2, healthyThreshold: 1 }
    grpc: true, health_checks: { health_check: { grpc: {} } } -> grpc: true, rewrite: '', healthCheck: { grpc: { service: '' }, path: /grpc.health.v1.Health/Check, timeoutMs: 3000, intervalMs: 5000, expectedStatuses: [{ min: 200, max: 200 }], unhealthyThreshold: 2, healthyThreshold: 1 }
    outlier_detection: { consecutive_5xx: 0 }         -> outlierDetection: { consecutive5xx: 0, baseEjectionTimeMs: 30000, maxEjectionPercent: 50 }
    cors: { origins: 'https://a.example, https://b.example', headers: X-Plan, credentials: true, max_age: '600' } -> cors: { origins: [https://a.example, https://b.example], methods: [GET, HEAD, POST], headers: [x-plan], exposedHeaders: [], credentials: true, maxAgeSeconds: 600 }
    add_request_headers: { X-A: a, X-B: { value: b, append: false } } -> requestHeaders: { add: [{ name: x-a, value: a, append: true }, { name: x-b, value: b, append: false }], remove: [] }
    remove_request_headers: X-Three                   -> requestHeaders: { add: [], remove: [x-three] }
    remove_response_headers: [X-Four, x-five]         -> responseHeaders: { add: [], remove: [x-four, x-five] }
    labels: { a: [{ g: [two, remote_address] }, { h: [one] }], b: [] } -> labels: { a: [{ name: g, labels: [{ kind: generic_key, name: generic_key, value: two }, { kind: remote_address, name: remote_address }] }, { name: h, labels: [{ kind: generic_key, name: generic_key, value: one }] }], b: [] }
  `,
  );

  const labels = `
    remote_address                                    -> kind: remote_address, name: remote_address
    masked_remote_address                             -> kind: masked_remote_address, name: masked_remote_address, ipv4: 32, ipv6: 128
    masked_remote_address: { v6_prefix_mask_len: 64 } -> kind: masked_remote_address, name: masked_remote_address, ipv4: 32, ipv6: 64
    masked_remote_address: { key: net, v4_prefix_mask_len: 0 } -> kind: masked_remote_address, name: net, ipv4: 0, ipv6: 128
    catalog                                           -> kind: generic_key, name: generic_key, value: catalog
    generic_key: one                                  -> kind: generic_key, name: generic_key, value: one
    generic_key: { key: two, value: three }           -> kind: generic_key, name: two, value: three
    source_cluster: { key: from }                     -> kind: source_cluster, name: from
    destination_cluster: {}                           -> kind: destination_cluster, name: destination_cluster
    method: {}                                        -> kind: method, name: method
    path: { key: where }                              -> kind: path, name: where
    verb: { header: ':method' }                       -> kind: method, name: verb
    target: { header: ':path' }                       -> kind: path, name: target
    site: { header: ':authority' }                    -> kind: header, name: site, header: host, omitIfNotPresent: false, default: ''
    header: { header: X-A }                           -> kind: header, name: header, header: x-a, omitIfNotPresent: false, default: ''
    method: { header: X-Method }                      -> kind: header, name: method, header: x-method, omitIfNotPresent: false, default: ''
    plan: { header: X-Plan, default: free }           -> kind: header, name: plan, header: x-plan, omitIfNotPresent: false, default: free
    plan: { header: X-Plan, omit_if_not_present: true } -> kind: header, name: plan, header: x-plan, omitIfNotPresent: true, default: ''
    request_headers: { key: plan, header_name: X-Plan, omit_if_not_present: true } -> kind: header, name: plan, header: x-plan, omitIfNotPresent: true, default: ''
  `;
  // The forms of all Ambassador releases.
  check(
    mapping,
    labels
      .trim()
      .replace(
        /^ *(.*?) +-> (.*)$/gm,
        'labels: { d: [{ g: [$1] }] } -> labels: { d: [{ name: g, labels: [{ $2 }] }] }',
      ),
  );
});

describe('an AuthService', () => {
  it('has defaults with which it fails closed', () => {
    const failsClosed = { statusOnError: 503, failureModeAllow: false };
    const expected = { name: 'one', allowedAuthorizationHeaders: [], timeoutMs: 5000, source, ...failsClosed };
    assert.deepEqual(recordFrom(authService), authRecordOf(expected));
  });

  check(
    authService,
    `
    allowed_authorization_headers: [X-User, x-plan]   -> allowedAuthorizationHeaders: [x-user, x-plan]
    allowed_client_headers_on_success: [Set-Cookie]   -> allowedClientHeadersOnSuccess: [set-cookie]
    allow_status: 200                                 -> allowStatus: 200
    timeout_ms: 200, status_on_error: { code: 403 }   -> timeoutMs: 200, statusOnError: 403
    failure_mode_allow: true, default: false          -> failureModeAllow: true, isDefault: false
    path_prefix: /extauth/, cache_ms: 1000            -> pathPrefix: /extauth, cacheMs: 1000
    allowed_request_headers: [X-Api-Key]              -> allowedRequestHeaders: [x-api-key]
    add_auth_headers: { X-By: gateway }               -> addAuthHeaders: [{ name: x-by, value: gateway }]
    include_body: { max_bytes: 4096, allow_partial: true } -> includeBody: { maxBytes: 4096, allowPartial: true }
  `,
  );

  const staff = { ...authService, name: 'staff', default: false };
  const named = { ...mapping, auth_service: 'staff' };

  it('can be defined in addition to the default one, for the mappings that name it', () => {
    const { authServices, mappings } = read(authService, staff, named);
    assert.deepEqual([authServices.map(({ name }) => name), mappings[0]?.authService], [['one', 'staff'], 'staff']);
  });

  it('does not replace a broken or missing one, and the mapping that names it is dropped', () => {
    const other = { ...mapping, name: 'two', prefix: '/v2', auth_service: 'one' };
    const records = [{ ...authService, timeout_ms: 'soon' }, staff, mapping, other];
    const { configuration, errors } = configurationFrom(untyped({ records }));
    const found = errors.map(({ record, message }) => `${record}: ${message}`);
    assert.deepEqual(configuration.mappings, []);
    assert.deepEqual(found, [
      'AuthService one: timeout_ms must be a number, not a string',
      'Mapping one: has no auth_service, and no AuthService is the default',
      'Mapping two: there is no AuthService "one"',
    ]);
  });

  it('does not have to be the default if each mapping names one, bypasses auth or redirects', () => {
    const open = { ...mapping, name: 'two', prefix: '/v2', bypass_auth: true };
    const gone = { ...mapping, name: 'three', prefix: '/v3', path_redirect: '/v2' };
    assert.equal(read(staff, named, open, gone).mappings.length, 3);
  });
});

describe('a RateLimitService', () => {
  it('has defaults with which it fails open', () => {
    const names = 'ratelimit-limit ratelimit-remaining ratelimit-reset';
    const allowedResponseHeaders = `${names} ${names.replace(/ratelimit/g, 'x-ratelimit')}`.split(' ');
    assert.deepEqual(recordFrom(rateLimitService), {
      kind: 'RateLimitService',
      name: 'one',
      service: 'ratelimit',
      domain: 'gateway',
      timeoutMs: 100,
      failureModeDeny: false,
      headers: 'ietf',
      allowedResponseHeaders,
      source,
    });
  });

  check(
    rateLimitService,
    `
    service: grpc://10.0.0.5:8081, domain: edge       -> service: grpc://10.0.0.5:8081, domain: edge
    timeout_ms: 20, failure_mode_deny: true           -> timeoutMs: 20, failureModeDeny: true
    headers: draft_03, allowed_response_headers: [X-Plan] -> headers: draft_03, allowedResponseHeaders: [x-plan]
  `,
  );
});

describe('a Version', () => {
  const june = Date.UTC(2027, 5, 30);
  check(
    version,
    `
    prefix: /api/v1/, sunset: '2027-06-30'            -> prefix: /api/v1, endsAtMs: ${june}, deprecatedAtMs: null, successor: null, info: null
    deprecation: '2027-06-30'                         -> deprecatedAtMs: ${june}, endsAtMs: null
    deprecation: '2027-06-30', sunset: '2027-06-30T02:00:00+02:00' -> deprecatedAtMs: ${june}, endsAtMs: ${june}
    sunset: '2028-02-29'                              -> endsAtMs: ${Date.UTC(2028, 1, 29)}
    sunset: '2027-06-30T23:59:59Z'                    -> endsAtMs: ${Date.UTC(2027, 5, 30, 23, 59, 59)}
    sunset: '2027-06-30T23:59:59.250Z'                -> endsAtMs: ${Date.UTC(2027, 5, 30, 23, 59, 59, 250)}
    sunset: '2027-06-30T00:00:00-09:30'               -> endsAtMs: ${Date.UTC(2027, 5, 30, 9, 30)}
    sunset: '2027-06-30', info: 'https://example.com/leaving?from=v1#now' -> info: 'https://example.com/leaving?from=v1#now'
  `,
  );
  for (const successor of ['/v2', '/v2/?from=v1', '/caf%C3%A9/', 'http://next.example', 'HTTPS://next.example/v2/'])
    check(version, `sunset: '2027-06-30', successor: '${successor}' -> successor: '${successor}'`);

  it('can cover a part of another', () => {
    const sunset = '2027-06-30';
    const part = { ...version, name: 'part', prefix: '/v1/messages', sunset };
    assert.equal(read({ ...version, sunset }, part).versions.length, 2);
  });
});
