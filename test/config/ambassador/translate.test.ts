/** Tests the translation of files for Ambassador and Emissary, and the notices about unsupported parts. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { configurationFrom, formatErrors, loadConfiguration, mappingDefaults } from '#config';
import { kinds, translateRecords } from '../../../src/config/ambassador/translate.ts';
import { temporaryFiles } from '../../support/temporary-files.ts';
import { untyped } from '../../support/untyped.ts';

const fixtures = fileURLToPath(new URL('../../fixtures/ambassador', import.meta.url));
const gatewayDomain = 'getambassador.io';

function textOf(name: string): string {
  return readFileSync(`${fixtures}/${name}`, 'utf8');
}

/** Returns the fields of a record that differ from the defaults. */
function fieldsOf(record: object | undefined): object {
  const defaults: Readonly<Record<string, unknown>> = { source: '', kind: '', ...mappingDefaults };
  const entries = Object.entries(record ?? {}).filter(
    ([key, value]) => !['source', 'kind'].includes(key) && JSON.stringify(value) !== JSON.stringify(defaults[key]),
  );
  return Object.fromEntries(entries);
}

describe("Ambassador's own files", () => {
  const writeFiles = temporaryFiles();

  async function load(name: string) {
    const directory = await writeFiles({ [`services/${name}.yaml`]: textOf(`${name}.yaml`) });
    const { configuration, errors, notices } = await loadConfiguration(directory, { gatewayDomain });
    const report = ['errors', formatErrors(errors, directory), 'notices', formatErrors(notices, directory)];
    const byName = new Map(configuration.mappings.map((mapping) => [mapping.name, mapping]));
    return { configuration, byName, report: `${report.filter((part) => part !== '').join('\n')}\n` };
  }

  for (const file of readdirSync(fixtures).filter((name) => name.endsWith('.yaml'))) {
    const name = file.replace('.yaml', '');
    it(`get notices with line numbers for all unsupported fields: ${name}`, async () => {
      assert.equal((await load(name)).report, textOf(`${name}.notices.txt`));
    });
  }

  it('are read from annotations of all releases', async () => {
    const { configuration, byName } = await load('annotations-v1');
    const allow = 'x-ambassador-test-allow';
    const header = { kind: 'header', name: allow, header: allow, omitIfNotPresent: true, default: '' };
    const labels = [header, { kind: 'generic_key', name: 'generic_key', value: 'catalog' }];
    assert.deepEqual(fieldsOf(byName.get('qotm_mapping')), {
      name: 'qotm_mapping',
      prefix: '/qotm',
      rewrite: '/qotm',
      service: 'qotm',
      timeoutMs: 3000,
      cookiePath: 'keep',
      allowUpgrade: ['websocket'],
      requestHeaders: { add: [{ name: 'x-test-static', value: 'This is a test header', append: true }], remove: [] },
      labels: { ambassador: [{ name: 'request_label_group', labels }] },
    });
    assert.deepEqual(fieldsOf(byName.get('httpbin_mapping')), {
      name: 'httpbin_mapping',
      prefix: '/httpbin',
      service: 'httpbin.org:80',
      hostRewrite: 'httpbin.org',
      timeoutMs: 3000,
      cookiePath: 'keep',
      allowUpgrade: ['spdy/3.1'],
    });
    const [auth] = configuration.authServices;
    assert.deepEqual(
      [auth?.authService, auth?.pathPrefix, auth?.includeBody, auth?.allowedAuthorizationHeaders],
      ['https://example-auth:3000', '/extauth', { maxBytes: 4096, allowPartial: true }, ['x-qotm-session']],
    );
    assert.equal(configuration.rateLimitServices[0]?.domain, 'ambassador');
  });

  it('are read from resources, whose names include the namespace', async () => {
    const { configuration } = await load('resources-v2');
    const [on, search, ...others] = configuration.mappings;
    assert.deepEqual(others, []);
    assert.equal(on?.name, 'filter-actions-on-mapping.ambassador');
    assert.deepEqual([on.prefix, on.prefixMatch], ['/filter-actions/on', 'exact']);
    assert.deepEqual(search?.host, { kind: 'suffix', value: '.example.com' });
    assert.equal(search.hostRewrite, '{service}');
    assert.deepEqual(search.headers, [{ name: 'x-experiment', match: { kind: 'present' } }]);
    assert.equal(search.circuitBreakers.maxConnections, 16);
    assert.deepEqual(search.cors?.origins, ['http://foo.example', 'http://bar.example']);
  });

  it('can share a prefix by weight, and redirect', async () => {
    const { byName } = await load('resources-v3alpha1');
    assert.deepEqual([byName.get('quote-canary')?.weight, byName.get('quote-stable')?.weight], [10, undefined]);
    const moved = byName.get('moved');
    assert.deepEqual(moved?.host, { kind: 'exact', value: 'old.example.com' });
    const to = { scheme: undefined, host: 'www.example.com', port: undefined };
    assert.deepEqual(moved.redirect, { ...to, path: { kind: 'path', value: '/new' }, status: 302 });
    assert.equal(byName.get('not-moved')?.redirect, undefined);
    const backend = byName.get('quote-backend');
    assert.equal(backend?.retryPolicy?.perTryTimeoutMs, 150);
    assert.deepEqual(backend.healthCheck?.expectedStatuses, [{ min: 200, max: 201 }]);
  });

  /** Returns what the records are read as. They must be valid. */
  function translated(...records: readonly object[]) {
    const { configuration, errors } = configurationFrom(untyped({ records }), { gatewayDomain });
    assert.deepEqual(errors, []);
    return configuration;
  }

  const ours = { apiVersion: 'gateway/v1', kind: 'Mapping', name: 'hotel', prefix: '/v1/hotels', service: 'hotel' };

  it('call a service without a dot in the namespace of their resource or manifest, like Ambassador', () => {
    const spec = (service: string) => ({ prefix: '/', service });
    const resource = (service: string, namespace = 'shop') => ({
      apiVersion: 'getambassador.io/v2',
      kind: 'Mapping',
      metadata: { name: 'api', namespace },
      spec: spec(service),
    });
    const annotated = { apiVersion: 'ambassador/v1', kind: 'Mapping', name: 'api', ...spec('noted') };
    const annotations = { 'getambassador.io/config': JSON.stringify(annotated) };
    const manifest = { apiVersion: 'v1', kind: 'Service', metadata: { name: 'api', namespace: 'shop', annotations } };
    const calls = (record: object) => translated(record).mappings.map(({ name, service }) => [name, service])[0];
    assert.deepEqual(calls(resource('quote')), ['api.shop', 'quote.shop']);
    assert.deepEqual(calls(resource('https://quote:8443')), ['api.shop', 'https://quote.shop:8443']);
    assert.deepEqual(calls(resource('quote.other:80')), ['api.shop', 'quote.other:80']);
    assert.deepEqual(calls(resource('localhost:80')), ['api.shop', 'localhost:80']);
    assert.deepEqual(calls(resource('quote', 'default')), ['api', 'quote']);
    assert.deepEqual(calls(manifest), ['api.shop', 'noted.shop']);
    assert.deepEqual(calls({ ...annotated, namespace: 'shop' }), ['api.shop', 'noted.shop']);
  });

  it('are read as a cluster exports them: with marked ids, in lists of one kind, in annotations of other objects', async () => {
    const { configuration, byName } = await load('exported');
    const names = configuration.mappings.map(({ name }) => name);
    assert.deepEqual(names, ['quote', 'converted', 'secret', 'from-ingress.shop']);
    assert.equal(byName.get('from-ingress.shop')?.service, 'app.shop');
    const [auth, ...others] = configuration.authServices;
    assert.deepEqual([auth?.name, auth?.authService, others], ['authentication', 'auth:3000', []]);
    assert.deepEqual(auth?.allowedAuthorizationHeaders, ['x-user']);
  });

  it('are read with everything that the Kubernetes API writes when it converts them', async () => {
    const { byName } = await load('exported');
    const header = (name: string, value: string) => ({ add: [{ name, value, append: true }], remove: [] });
    const plan = (name: string) => ({ kind: 'header', name, header: 'x-plan', omitIfNotPresent: true, default: '' });
    const quote = byName.get('quote');
    assert.deepEqual(quote?.requestHeaders, header('x-short', 'short'));
    assert.deepEqual(quote.host, undefined);
    assert.deepEqual(quote.labels['ambassador']?.[0]?.labels, [
      { kind: 'generic_key', name: 'kind', value: 'one' },
      plan('x-plan'),
    ]);
    assert.equal(quote.circuitBreakers.maxRequests, 8);
    const converted = byName.get('converted');
    assert.deepEqual(converted?.responseHeaders, header('x-short', 'short'));
    assert.deepEqual(converted.host, { kind: 'exact', value: 'shop.example.com' });
    assert.deepEqual(converted.cors?.origins, ['https://a.example']);
    assert.deepEqual(converted.labels['ambassador']?.[0]?.labels, [
      { kind: 'generic_key', name: 'generic_key', value: 'fixed' },
      plan('plan'),
    ]);
  });

  it('can call a service over gRPC, with its health checks and with the prefix removed by default', () => {
    const checks = [{ interval: '10s', health_check: { grpc: { upstream_name: 'shop.Carts', authority: 'carts' } } }];
    const head = { apiVersion: 'getambassador.io/v3alpha1', kind: 'Mapping' };
    const spec = { prefix: '/shop.Carts/', service: 'carts:50051', grpc: true, health_checks: checks };
    const [carts] = translated({ ...head, metadata: { name: 'carts' }, spec }).mappings;
    assert.deepEqual([carts?.grpc, carts?.rewrite, carts?.timeoutMs], [true, '/', 3000]);
    assert.deepEqual(carts?.healthCheck?.grpc, { service: 'shop.Carts' });
    const plain = { ...spec, grpc: false, rewrite: '/shop.Carts/' };
    const [other] = translated({ ...head, metadata: { name: 'carts' }, spec: plain }).mappings;
    assert.deepEqual([other?.grpc, other?.rewrite, other?.healthCheck], [false, '/shop.Carts', undefined]);
  });

  it('can redirect a path to the same path with a slash, beside a Mapping for that path', () => {
    const head = { apiVersion: 'getambassador.io/v3alpha1', kind: 'Mapping' };
    const pairs = ['path_redirect', 'prefix_redirect'].map((field) =>
      translated(
        {
          ...head,
          metadata: { name: 'add-slash' },
          spec: { prefix: '/one', host_redirect: true, [field]: '/one/', service: 'x.example' },
        },
        { ...head, metadata: { name: 'one' }, spec: { prefix: '/one/', service: 'one' } },
      ).mappings.map(({ prefix, prefixMatch, redirect }) => [prefix, prefixMatch, redirect?.path]),
    );
    const expected = [
      ['/one', 'exact', { kind: 'path', value: '/one/' }],
      ['/one', 'segments', undefined],
    ];
    assert.deepEqual(pairs, [expected, expected]);
  });

  it('lose no field of an annotation that has some of them beside metadata and spec, as Ambassador allows', () => {
    const head = { apiVersion: 'getambassador.io/v2', metadata: { name: 'ambassador' } };
    const read = (record: object) => {
      const { configuration, errors } = configurationFrom(untyped({ records: [record] }), { gatewayDomain });
      return [configuration.mappings[0]?.prefix, ...errors.map(({ message }) => message)];
    };
    const denied = { ip_deny: [{ peer: '10.0.0.1' }] };
    assert.deepEqual(read({ ...head, kind: 'Module', config: denied }), [
      undefined,
      'ip_deny protects requests, and is not supported',
    ]);
    assert.deepEqual(read({ ...head, kind: 'Mapping', spec: { service: 'a' }, prefix: '/a/' }), ['/a']);
    assert.deepEqual(read({ ...head, kind: 'TLSContext', spec: 'cert_required: true' }), [
      undefined,
      'unknown key "spec"',
    ]);
    assert.deepEqual(read({ ...head, kind: 'Module', spec: { config: 'ip_deny: []' } }), [
      undefined,
      'config must be a map, not a string',
    ]);
  });

  it('are errors if their apiVersion is mistyped, whatever their kind', () => {
    for (const kind of ['Module', 'FilterPolicy', 'AuthService']) {
      const record = { apiVersion: 'getambasador.io/v2', kind, metadata: { name: 'a' }, spec: {} };
      const { errors } = configurationFrom(untyped({ records: [record] }), { gatewayDomain });
      assert.deepEqual(
        errors.map(({ message }) => message),
        ['apiVersion "getambasador.io/v2" is not supported, did you mean "getambassador.io/v2"?'],
      );
    }
    const version = { apiVersion: 'gatway/v1', kind: 'Version', name: 'v1', prefix: '/v1', sunset: '2027-06-30' };
    const [error] = configurationFrom(untyped({ records: [version] }), { gatewayDomain }).errors;
    assert.equal(error?.message, 'apiVersion "gatway/v1" is not supported');
  });

  it('are refused with a Mapping whose limits of Ambassador 0.x are not applied', async () => {
    const { configuration, report } = await load('faults');
    assert.match(report, /Mapping old-limits: /);
    assert.deepEqual(configuration.mappings, []);
  });

  it('keep the conditions that the Kubernetes API writes separately when it converts them', () => {
    const spec = { v2BoolHeaders: ['x-trial'], headers: { 'x-plan': 'gold' }, v2BoolQueryParameters: ['debug'] };
    const mapping = {
      apiVersion: 'getambassador.io/v3alpha1',
      kind: 'Mapping',
      metadata: { name: 'a' },
      spec: { prefix: '/', service: 'b', ...spec },
    };
    const [{ headers, queryParameters } = {}] = translated(mapping).mappings;
    const present = (name: string) => ({ name, match: { kind: 'present' } });
    assert.deepEqual(headers, [{ name: 'x-plan', match: { kind: 'exact', value: 'gold' } }, present('x-trial')]);
    assert.deepEqual(queryParameters, [present('debug')]);
  });

  it('rewrite the whole path that a regular expression matches, unless rewrite is empty, like Ambassador', () => {
    const rewritten = (more: object) => {
      const mapping = { ...ours, apiVersion: 'ambassador/v1', prefix: '/v[0-9]+/.*', prefix_regex: true, ...more };
      const { configuration, errors, notices } = configurationFrom(untyped({ records: [mapping] }), { gatewayDomain });
      assert.deepEqual([errors, notices.length], [[], 1]);
      const { pattern, substitution } = configuration.mappings[0]?.regexRewrite ?? {};
      return [pattern, substitution];
    };
    assert.deepEqual(rewritten({}), ['^.*$', '/']);
    assert.deepEqual(rewritten({ rewrite: '/hotels/' }), ['^.*$', '/hotels/']);
    assert.deepEqual(rewritten({ rewrite: '' }), [undefined, undefined]);
    assert.deepEqual(rewritten({ regex_rewrite: { pattern: '^/v', substitution: '/' } }), ['^/v', '/']);
  });

  it('can use a regular expression with a * as host', () => {
    const mapping = { ...ours, apiVersion: 'ambassador/v1', host: '[a-z]*\\.example\\.com', host_regex: true };
    assert.deepEqual(translated(mapping).mappings[0]?.host, { kind: 'regex', pattern: '[a-z]*\\.example\\.com' });
  });

  it('can use the ambassador/v0 name for the headers of an AuthService', () => {
    const auth = { apiVersion: 'ambassador/v0', kind: 'AuthService', name: 'auth', auth_service: 'example-auth:3000' };
    const named = (more: object) =>
      translated({ ...auth, allowed_headers: ['X-Qotm-Session'], ...more }).authServices[0]
        ?.allowedAuthorizationHeaders;
    assert.deepEqual(named({}), ['x-qotm-session']);
    assert.deepEqual(named({ allowed_authorization_headers: ['X-User'] }), ['x-user']);
  });

  it('let 200 alone allow a request, as in Ambassador, and may list headers for the client', () => {
    const auth = { apiVersion: 'ambassador/v1', kind: 'AuthService', name: 'auth', auth_service: 'example-auth:3000' };
    const [{ allowStatus, allowedClientHeadersOnSuccess } = {}] = translated({
      ...auth,
      allowed_client_headers_on_success: ['Set-Cookie'],
    }).authServices;
    assert.deepEqual([allowStatus, allowedClientHeadersOnSuccess], [200, ['set-cookie']]);
    const records = [{ ...auth, allowed_authorization_headers: ['X-User', 'Set-Cookie'] }];
    const { configuration, errors, notices } = configurationFrom(untyped({ records }), { gatewayDomain });
    assert.deepEqual([configuration.authServices[0]?.allowedAuthorizationHeaders, errors], [['x-user'], []]);
    assert.match(notices.map(({ remedy }) => remedy).join(), /allowed_client_headers_on_success/);
  });

  it('call an AuthService over gRPC, and get a notice for fields that Ambassador ignores then', () => {
    const auth = { apiVersion: 'ambassador/v2', kind: 'AuthService', name: 'auth', auth_service: 'policies:9191' };
    const overGrpc = { ...auth, proto: 'grpc', protocol_version: 'v3', path_prefix: '/check', allow_status: undefined };
    const mapping = { ...ours, apiVersion: 'ambassador/v2', auth_context_extensions: { tier: 'gold' } };
    const read = (record: object) => configurationFrom(untyped({ records: [record, mapping] }), { gatewayDomain });
    const { configuration, errors, notices } = read(overGrpc);
    const [{ proto, pathPrefix, allowStatus } = {}] = configuration.authServices;
    assert.deepEqual([proto, pathPrefix, allowStatus, errors], ['grpc', '', '2xx', []]);
    assert.deepEqual(configuration.mappings[0]?.authContextExtensions, [['tier', 'gold']]);
    assert.ok(notices.some(({ message }) => message === 'path_prefix has no effect with proto: grpc'));
    const [error] = read({ ...overGrpc, path_prefix: '', protocol_version: 'v2' }).errors;
    assert.match(error?.message ?? '', /"v2" is not supported/);
    assert.deepEqual(read({ ...auth, protocol_version: 'v2' }).errors, []);
  });

  it('get a notice with a remedy for unsupported kinds', () => {
    for (const kind of ['ConsulResolver', 'DevPortal', 'OutlierDetection', 'TCPMapping', 'TracingService']) {
      const record = { apiVersion: 'ambassador/v1', kind, name: 'x', max_connections: 5 };
      const { errors, notices } = configurationFrom(untyped({ records: [record, ours] }), { gatewayDomain });
      assert.deepEqual([errors, notices.map(({ message }) => message)], [[], [`this ${kind} is not read`]]);
    }
  });

  it('get a notice if calls beyond a limit should get another gRPC status than RESOURCE_EXHAUSTED', () => {
    const noticesOf = (grpc: object | undefined) => {
      const spec = { service: 'limits:8081', grpc };
      const record = {
        apiVersion: 'getambassador.io/v3alpha1',
        kind: 'RateLimitService',
        metadata: { name: 'a' },
        spec,
      };
      const { notices } = configurationFrom(untyped({ records: [record] }), { gatewayDomain });
      return notices.map(({ message }) => message).filter((message) => /grpc/.test(message));
    };
    assert.deepEqual([undefined, {}, { use_resource_exhausted_code: true }].flatMap(noticesOf), []);
    const [notice, ...more] = noticesOf({ use_resource_exhausted_code: false });
    assert.match(notice ?? '', /RESOURCE_EXHAUSTED/);
    assert.deepEqual(more, []);
  });

  it('can be mixed with our records, which get no notice', () => {
    const { configuration, errors, notices } = configurationFrom(untyped({ records: [ours] }), { gatewayDomain });
    assert.deepEqual([configuration.mappings.length, errors, notices], [1, [], []]);
  });

  it('are rejected without their GATEWAY_DOMAIN, which the error mentions', () => {
    const [error, ...others] = configurationFrom({ records: [{ ...ours, apiVersion: 'ambassador/v1' }] }).errors;
    assert.deepEqual(others, []);
    assert.match(error?.remedy ?? '', /GATEWAY_DOMAIN=getambassador\.io/);
  });

  it('leave documents unchanged that are not records', () => {
    const kind = 'constructor';
    const values = [undefined, 7, [], {}, { apiVersion: 1 }, { apiVersion: 'ambassador/v1', kind }];
    const place = { file: 'a.yaml', lineOf: () => 1 };
    const documents = values.map((value) => ({ value, file: 'a.yaml', lineAt: () => 1, placeWithin: () => place }));
    const unchanged = { records: documents, notices: [], errors: [], addresses: [], first: undefined };
    assert.deepEqual(translateRecords(documents, gatewayDomain), unchanged);
  });
});

describe('translateRecords knows every field of the releases up to v3alpha1', () => {
  function check(kind: string, fields: string): void {
    it(kind, () => {
      const { rows = {}, others = {} } = kinds[kind] ?? {};
      const known = [...Object.values(rows).map(({ name }) => name), ...Object.keys(others)];
      assert.deepEqual(
        fields.split(/\s+/).filter((field) => !known.includes(field)),
        [],
      );
    });
  }

  check(
    'Mapping',
    `add_linkerd_headers add_request_headers add_response_headers allow_upgrade ambassadorId ambassador_id auth_context_extensions
    auto_host_rewrite bypass_auth bypass_error_response_overrides case_sensitive circuit_breaker circuit_breakers
    cluster_idle_timeout_ms cluster_max_connection_lifetime_ms cluster_tag connect_timeout_ms cors dns_type docs
    enable_ipv4 enable_ipv6 envoy_override error_response_overrides grpc headers health_checks host host_redirect
    host_regex host_rewrite hostname idle_timeout_ms keepalive labels load_balancer method method_regex modules name
    outlier_detection path_redirect precedence prefix prefix_exact prefix_redirect prefix_regex priority
    query_parameters rate_limits redirect_response_code regex_headers regex_query_parameters regex_redirect
    regex_rewrite remove_request_headers remove_response_headers resolver respect_dns_ttl retry_policy rewrite service
    shadow stats_name timeout_ms tls use_websocket v2BoolHeaders v2BoolQueryParameters v2ExplicitTLS v3StatsName
    v3health_checks weight`,
  );
  check(
    'AuthService',
    `add_auth_headers add_linkerd_headers allow_request_body allowed_authorization_headers allowed_headers
    allowed_request_headers ambassador_id auth_service circuit_breakers failure_mode_allow include_body name path_prefix proto protocol_version
    stats_name status_on_error timeout_ms tls v2ExplicitTLS v3CircuitBreakers v3StatsName`,
  );
  check(
    'RateLimitService',
    `ambassador_id domain failure_mode_deny grpc name protocol_version service stats_name timeout_ms tls v2ExplicitTLS
    v3GRPC v3StatsName`,
  );

  /** Returns the errors about a record with these fields, all of them empty, which turns off those that protect requests. */
  function errorsAbout(kind: string, fields: string, place: (fields: object) => object): readonly string[] {
    const empty = Object.fromEntries(fields.split(/\s+/).map((field) => [field, null]));
    const record = { apiVersion: 'getambassador.io/v2', kind, metadata: { name: 'ambassador' }, spec: place(empty) };
    const { errors } = configurationFrom(untyped({ records: [record] }), { gatewayDomain });
    return errors.map(({ message }) => message);
  }

  function checkOther(kind: string, fields: string, place: (fields: object) => object = (spec) => spec): void {
    it(kind, () => assert.deepEqual(errorsAbout(kind, fields, place), []));
  }

  checkOther(
    'Module',
    `add_linkerd_headers admin_port allow_chunked_length auth_enabled buffer buffer_limit_bytes circuit_breakers
    cluster_idle_timeout_ms cluster_max_connection_lifetime_ms cluster_request_timeout_ms cors debug_mode
    default_label_domain default_labels defaults diag_port diagnostics enable_grpc_http11_bridge enable_grpc_web
    enable_http10 enable_ipv4 enable_ipv6 envoy_log_format envoy_log_path envoy_log_type envoy_validation_timeout
    error_response_overrides forward_client_cert_details grpc_stats gzip header_case_overrides
    headers_with_underscores_action ip_allow ip_deny keepalive listener_idle_timeout_ms liveness_probe load_balancer
    lua_scripts max_request_headers_kb merge_slashes preserve_external_request_id proper_case prune_unreachable_routes
    readiness_probe regex_max_size regex_type reject_requests_with_escaped_slashes resolver retry_policy runtime_flags
    server_name service_port set_current_client_cert_details statsd strip_matching_host_port suppress_envoy_headers
    use_ambassador_namespace_for_service_resolution use_proxy_proto use_remote_address x_forwarded_proto_redirect
    xff_num_trusted_hops`,
    (config) => ({ config }),
  );
  const tls = `alpn_protocols ca_secret cacert_chain_file cert_chain_file cert_required cipher_suites crl_secret
    ecdh_curves max_tls_version min_tls_version private_key_file redirect_cleartext_from sni v3CRLSecret`;
  checkOther('TLSContext', `${tls} hosts secret secret_namespacing`);
  checkOther(
    'Host',
    `acmeProvider ambassadorId hostname mappingSelector previewUrl requestPolicy selector tls tlsContext tlsSecret`,
  );
  checkOther('Host', tls, (fields) => ({ tls: fields }));
  checkOther(
    'Listener',
    `hostBinding http2MaxConcurrentStreams l7Depth port protocol protocolStack securityModel statsPrefix`,
  );

  it('and reports a mistyped one', () => {
    assert.deepEqual(
      errorsAbout('TLSContext', 'cert_requierd', (spec) => spec),
      ['unknown key "cert_requierd", did you mean "cert_required"?'],
    );
  });
});
