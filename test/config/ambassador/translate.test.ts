/** Files that teams bring from Ambassador and Emissary: what they become here, and what is told of the rest. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { configurationFrom, formatErrors, type LoadedConfiguration, loadConfiguration, mappingDefaults } from '#config';
import { kinds, translateRecords } from '../../../src/config/ambassador/translate.ts';
import { temporaryFiles } from '../../support/temporary-files.ts';

const fixtures = fileURLToPath(new URL('../../fixtures/ambassador', import.meta.url));
const gatewayDomain = 'getambassador.io';

function textOf(name: string): string {
  return readFileSync(`${fixtures}/${name}`, 'utf8');
}

/** What a record says beyond the defaults. */
function said(record: object | undefined): object {
  const defaults: Readonly<Record<string, unknown>> = mappingDefaults;
  const entries = Object.entries(record ?? {}).filter(
    ([key, value]) => key !== 'source' && key !== 'kind' && JSON.stringify(value) !== JSON.stringify(defaults[key]),
  );
  return Object.fromEntries(entries);
}

describe("Ambassador's own files", () => {
  const writeFiles = temporaryFiles();

  async function load(name: string): Promise<{ loaded: LoadedConfiguration; told: string }> {
    const directory = await writeFiles({ [`services/${name}.yaml`]: textOf(`${name}.yaml`) });
    const loaded = await loadConfiguration(directory, { gatewayDomain });
    const parts = [
      'errors',
      formatErrors(loaded.errors, directory),
      'notices',
      formatErrors(loaded.notices, directory),
    ];
    return { loaded, told: `${parts.filter((part) => part !== '').join('\n')}\n` };
  }

  for (const file of readdirSync(fixtures).filter((name) => name.endsWith('.yaml'))) {
    const name = file.replace('.yaml', '');
    it(`${name}: each field that is not supported is told with its line`, async () => {
      const { told } = await load(name);
      assert.equal(told, textOf(`${name}.notices.txt`));
    });
  }

  it('are read from annotations of every release', async () => {
    const { configuration } = (await load('annotations-v1')).loaded;
    const [qotm, httpbin] = configuration.mappings;
    assert.deepEqual(said(qotm), {
      name: 'qotm_mapping',
      prefix: '/qotm',
      rewrite: '/qotm',
      service: 'qotm',
      allowUpgrade: ['websocket'],
      requestHeaders: { add: [{ name: 'x-test-static', value: 'This is a test header', append: true }], remove: [] },
      labels: {
        ambassador: [
          {
            name: 'request_label_group',
            labels: [
              {
                kind: 'header',
                name: 'x-ambassador-test-allow',
                header: 'x-ambassador-test-allow',
                omitIfNotPresent: true,
                default: '',
              },
              { kind: 'generic_key', name: 'generic_key', value: 'catalog' },
            ],
          },
        ],
      },
    });
    assert.deepEqual(said(httpbin), {
      name: 'httpbin_mapping',
      prefix: '/httpbin',
      service: 'httpbin.org:80',
      hostRewrite: 'httpbin.org',
      allowUpgrade: ['spdy/3.1'],
    });
    const [auth] = configuration.authServices;
    assert.deepEqual(
      [auth?.authService, auth?.pathPrefix, auth?.includeBody, auth?.allowedAuthorizationHeaders],
      ['https://example-auth:3000', '/extauth', { maxBytes: 4096, allowPartial: true }, ['x-qotm-session']],
    );
    assert.equal(configuration.rateLimitServices[0]?.domain, 'ambassador');
  });

  it('are read as resources, named after their namespace', async () => {
    const { configuration } = (await load('resources-v2')).loaded;
    const [on, search, ...others] = configuration.mappings;
    assert.deepEqual(others, []);
    assert.deepEqual(
      [on?.name, on?.prefix, on?.prefixMatch],
      ['filter-actions-on-mapping.ambassador', '/filter-actions/on', 'exact'],
    );
    assert.deepEqual(search?.host, { kind: 'suffix', value: '.example.com' });
    assert.deepEqual(search?.headers, [{ name: 'x-experiment', match: { kind: 'present' } }]);
    assert.equal(search?.circuitBreakers.maxConnections, 16);
    assert.deepEqual(search?.cors?.origins, ['http://foo.example', 'http://bar.example']);
  });

  it('may share a prefix by weight, and redirect', async () => {
    const { configuration } = (await load('resources-v3alpha1')).loaded;
    const byName = new Map(configuration.mappings.map((mapping) => [mapping.name, mapping]));
    assert.deepEqual([byName.get('quote-canary')?.weight, byName.get('quote-stable')?.weight], [10, undefined]);
    assert.deepEqual(byName.get('moved')?.host, { kind: 'exact', value: 'old.example.com' });
    assert.deepEqual(byName.get('moved')?.redirect, {
      host: 'www.example.com',
      path: { kind: 'path', value: '/new' },
      status: 302,
    });
    assert.equal(byName.get('not-moved')?.redirect, undefined);
    assert.equal(byName.get('quote-backend')?.retryPolicy?.perTryTimeoutMs, 150);
    assert.deepEqual(byName.get('quote-backend')?.healthCheck?.expectedStatuses, [{ min: 200, max: 201 }]);
  });

  it('may hold records of ours beside them, of which nothing is told', () => {
    const ours = { apiVersion: 'gateway/v1', kind: 'Mapping', name: 'hotel', prefix: '/v1/hotels', service: 'hotel' };
    const { configuration, errors, notices } = configurationFrom({ records: [ours] }, { gatewayDomain });
    assert.deepEqual([configuration.mappings.length, errors, notices], [1, [], []]);
  });

  it('are told of where GATEWAY_DOMAIN does not say that they are meant', () => {
    const record = {
      apiVersion: 'ambassador/v1',
      kind: 'Mapping',
      name: 'hotel',
      prefix: '/v1/hotels',
      service: 'hotel',
    };
    const [error, ...others] = configurationFrom({ records: [record] }).errors;
    assert.deepEqual(others, []);
    assert.match(error?.remedy ?? '', /GATEWAY_DOMAIN=getambassador\.io/);
  });

  it('are left alone, whatever they are, where they are no records at all', () => {
    const documents = [
      undefined,
      7,
      [],
      {},
      { apiVersion: 1 },
      { apiVersion: 'ambassador/v1', kind: 'constructor' },
    ].map((value) => ({
      value,
      file: 'a.yaml',
      lineAt: () => 1,
      placeWithin: () => ({ file: 'a.yaml', lineOf: () => 1 }),
    }));
    const nothing = { records: documents, notices: [], first: undefined };
    assert.deepEqual(translateRecords(documents, gatewayDomain), nothing);
  });
});

describe('every field of the releases up to v3alpha1 is known', () => {
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
    `add_linkerd_headers add_request_headers add_response_headers allow_upgrade ambassador_id auth_context_extensions
    auto_host_rewrite bypass_auth bypass_error_response_overrides case_sensitive circuit_breaker circuit_breakers
    cluster_idle_timeout_ms cluster_max_connection_lifetime_ms cluster_tag connect_timeout_ms cors dns_type docs
    enable_ipv4 enable_ipv6 envoy_override error_response_overrides grpc headers health_checks host host_redirect
    host_regex host_rewrite hostname idle_timeout_ms keepalive labels load_balancer method method_regex modules name
    outlier_detection path_redirect precedence prefix prefix_exact prefix_redirect prefix_regex priority
    query_parameters rate_limits redirect_response_code regex_headers regex_query_parameters regex_redirect
    regex_rewrite remove_request_headers remove_response_headers resolver respect_dns_ttl retry_policy rewrite service
    shadow stats_name timeout_ms tls use_websocket weight`,
  );
  check(
    'AuthService',
    `add_auth_headers add_linkerd_headers allow_request_body allowed_authorization_headers allowed_request_headers
    ambassador_id auth_service circuit_breakers failure_mode_allow include_body name path_prefix proto protocol_version
    stats_name status_on_error timeout_ms tls`,
  );
  check(
    'RateLimitService',
    'ambassador_id domain failure_mode_deny grpc name protocol_version service stats_name timeout_ms tls',
  );
});
