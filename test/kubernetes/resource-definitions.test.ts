/** `frontdesk crds` against a real API server: what its definitions accept and refuse, and with which message. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';
import fc from 'fast-check';
import { parseAllDocuments } from 'yaml';
import { configurationFrom } from '#config';
import { exampleRecords, values } from '../config/example-records.ts';
import { exampleConfiguration } from '../support/documented-examples.ts';
import {
  adminToken,
  describeWithKubernetes,
  type KubernetesServer,
  startKubernetes,
} from '../support/kubernetes/api-server.ts';
import { runCommand } from '../support/programs/command.ts';
import { isInstalled } from '../support/programs/installed.ts';
import { testServers } from '../support/serve.ts';
import { untyped } from '../support/untyped.ts';

const plurals: Readonly<Record<string, string>> = {
  Mapping: 'mappings',
  AuthService: 'authservices',
  JwtProvider: 'jwtproviders',
  RateLimitService: 'ratelimitservices',
  Version: 'versions',
  RoutePolicy: 'routepolicies',
};

/** A record as a resource. Names of resources are in lower case. */
function resourceOf({ apiVersion: _, kind, name: _name, ...spec }: Readonly<Record<string, unknown>>) {
  return { apiVersion: 'gateway.local/v1', kind: String(kind), metadata: { name: 'one' }, spec };
}

describeWithKubernetes('frontdesk crds', () => {
  const servers = testServers(after);
  let kubernetes: KubernetesServer;
  let output: string;
  before(async () => {
    kubernetes = await startKubernetes(servers);
    const { code, stdout } = await runCommand(['crds']);
    assert.equal(code, 0);
    output = stdout;
    const definitions = parseAllDocuments(output).map((one) => one.toJS());
    assert.deepEqual(
      definitions.map(({ metadata }) => metadata.name),
      Object.values(plurals).map((plural) => `${plural}.gateway.local`),
    );
    await kubernetes.apply(...definitions);
    // Waits until the kinds can be used.
    for (const [kind, { required }] of Object.entries(exampleRecords()))
      await kubernetes.remove((await kubernetes.apply(resourceOf({ kind, ...required })))[0] ?? assert.fail(kind));
  });

  /** Returns why the server refuses a record, or undefined if it accepts it. */
  async function refusal(record: Readonly<Record<string, unknown>>): Promise<string | undefined> {
    const path = `/apis/gateway.local/v1/namespaces/default/${plurals[String(record['kind'])]}`;
    const { status, body } = await kubernetes.request(
      'POST',
      `${path}?dryRun=All&fieldValidation=Strict`,
      resourceOf(record),
    );
    return status === 201 ? undefined : Object(body).message;
  }

  async function kubectl(args: readonly string[], input = '') {
    const config = await kubernetes.kubeconfig(adminToken);
    const child = spawn('kubectl', ['--kubeconfig', config, ...args]);
    child.stdin.end(input);
    const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)]);
    return { stdout, stderr };
  }

  it('prints definitions that kubectl applies without a warning, and the server establishes', async function () {
    if (!isInstalled('kubectl')) return this.skip();
    const { stdout, stderr } = await kubectl(['replace', '-f', '-'], output);
    assert.equal(stderr, '');
    assert.equal(stdout.trim().split('\n').length, Object.keys(plurals).length);
    for (const plural of Object.values(plurals)) {
      const path = `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${plural}.gateway.local`;
      const { conditions } = Object((await kubernetes.request('GET', path)).body).status;
      assert.deepEqual(
        conditions.map(({ type, status }: Readonly<Record<string, string>>) => `${type} ${status}`).sort(),
        ['Established True', 'NamesAccepted True'],
      );
    }
  });

  it('accepts every record of the documentation that the reader accepts', async () => {
    const { records } = exampleConfiguration();
    const valid = records.filter((record) => isRead(record));
    assert.ok(valid.length > 20);
    for (const record of valid) assert.equal(await refusal({ ...record }), undefined, JSON.stringify(record));
  });

  it('accepts references that only a cluster has: named ports and modules of frontdesk', async () => {
    const { Mapping, AuthService } = exampleRecords();
    for (const service of ['hotel:http', 'https://hotel.shop:api', 'hotel.shop.svc.cluster.local:8080'])
      assert.equal(await refusal({ ...Mapping?.required, service }), undefined);
    assert.equal(await refusal({ ...AuthService?.required, auth_service: 'frontdesk:auth' }), undefined);
  });

  it('never refuses a record that the reader accepts, but for a list of one map', async function () {
    this.timeout(120_000);
    let read = 0;
    for (const { required, optional } of Object.values(exampleRecords())) {
      const names = Object.keys({ ...required, ...optional });
      const some = fc.subarray(Object.keys(optional), { maxLength: 3 });
      const variants = fc.dictionary(fc.constantFrom(...names), fc.constantFrom(...values), { maxKeys: 1 });
      const check = async (chosen: readonly string[], more: Readonly<Record<string, unknown>>) => {
        const given = { ...required, ...Object.fromEntries(chosen.map((name) => [name, optional[name]])), ...more };
        const isList = ['circuit_breakers', 'health_checks'].some((name) => Array.isArray(Object(given)[name]));
        if (isList || !isRead(given)) return;
        read += 1;
        assert.equal(await refusal(given), undefined, JSON.stringify(given));
      };
      await fc.assert(fc.asyncProperty(some, variants, check), { seed: 1, numRuns: 400 });
    }
    assert.ok(read > 200, String(read));
  });

  for (const [kind, change, message] of [
    ['Mapping', { prefx: '/a' }, /unknown field "spec\.prefx"/],
    ['Mapping', { prefix: undefined }, /spec\.prefix: Required value/],
    ['Mapping', { prefix: 'v1' }, /prefix must be a path such as \/v1, unless prefix_regex is true/],
    ['Mapping', { timeout_ms: '5s' }, /spec\.timeout_ms in body must be of type integer: "string"/],
    ['Mapping', { timeout_ms: -1 }, /spec\.timeout_ms in body should be greater than or equal to 0/],
    ['Mapping', { weight: 101 }, /spec\.weight in body should be less than or equal to 100/],
    ['Mapping', { cookie_path: 'drop' }, /Unsupported value: "drop": supported values: "rewrite", "keep"/],
    ['Mapping', { service: 'http://hotel/base' }, /spec\.service in body should match/],
    ['Mapping', { path_redirect: '/a', timeout_ms: 1 }, /timeout_ms has no effect with a redirect/],
    ['Mapping', { rewrite: '/', regex_rewrite: { pattern: 'a', substitution: 'b' } }, /cannot be combined/],
    ['Mapping', { sticky: {} }, /write cookie or header/],
    ['Mapping', { circuit_breakers: { max_requests: 0 } }, /max_requests in body should be greater/],
    ['AuthService', { proto: 'udp' }, /Unsupported value: "udp": supported values: "http", "grpc"/],
    ['AuthService', { cache_ms: 60_001 }, /cache_ms in body should be less than or equal to 60000/],
    ['JwtProvider', { jwks_uri: undefined }, /write jwks_uri or jwks/],
    ['RateLimitService', { headers: 'draft_3' }, /supported values: "ietf", "draft_03", "none"/],
    ['Version', { sunset: undefined }, /write deprecation or sunset/],
    ['Version', { sunset: 'soon' }, /spec\.sunset in body should match/],
  ] as const)
    it(`refuses a ${kind} with ${JSON.stringify(change, (_, value) => value ?? null)}, and says why`, async () => {
      const record: Readonly<Record<string, unknown>> = { ...exampleRecords()[kind]?.required, ...change };
      assert.match(String(await refusal(record)), message);
    });

  it('refuses a RoutePolicy with a field that it cannot have, and accepts one of its own', async () => {
    const policy = { kind: 'RoutePolicy' };
    assert.match(String(await refusal({ ...policy, auth_sevice: 'tokens' })), /unknown field "spec\.auth_sevice"/);
    assert.match(String(await refusal({ ...policy, prefix: '/' })), /unknown field "spec\.prefix"/);
    assert.equal(await refusal({ ...policy, auth_service: 'tokens' }), undefined);
  });

  it('shows what is important with kubectl get, and takes conditions as the status', async function () {
    if (!isInstalled('kubectl')) return this.skip();
    const namespace = await kubernetes.createNamespace();
    const [mapping] = await kubernetes.apply({
      ...resourceOf({ kind: 'Mapping', prefix: '/shop', service: 'shop' }),
      metadata: { name: 'shop', namespace },
    });
    const path = `/apis/gateway.local/v1/namespaces/${namespace}/mappings/shop/status`;
    const condition = { type: 'Accepted', status: 'False', reason: 'Invalid', message: 'no' };
    const status = {
      conditions: [{ ...condition, lastTransitionTime: '2027-01-01T00:00:00Z', observedGeneration: 1 }],
    };
    const written = await kubernetes.request('PATCH', path, { status }, 'application/merge-patch+json');
    assert.equal(written.status, 200, JSON.stringify(written.body));
    assert.equal(Object(written.body).metadata.generation, Object(mapping).metadata.generation);
    const { stdout } = await kubectl(['get', 'frontdesk', '-n', namespace]);
    assert.match(
      stdout,
      /^NAME +PREFIX +SERVICE +ACCEPTED +REASON +AGE\n(?:\S*\/)?shop +\/shop +shop +False +Invalid +/,
    );
    const { stdout: explained } = await kubectl([
      'explain',
      'mappings.spec.timeout_ms',
      '--api-version=gateway.local/v1',
    ]);
    assert.match(explained, /How long to wait for the service's/);
  });
});

function isRead(record: object): boolean {
  return configurationFrom(untyped({ records: [record] })).errors.length === 0;
}
