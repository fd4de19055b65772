/** The recipe "Use the limiter from Envoy": the server that it starts, asked as its files have Envoy and Emissary ask. */
import assert from 'node:assert/strict';
import { parse, parseAllDocuments } from 'yaml';
import { loadConfiguration } from '#config';
import type { Server } from '../support/programs/frontdesk-process.ts';
import { testServers } from '../support/serve.ts';
import { temporaryFiles } from '../support/temporary-files.ts';
import { createStranger, type Stranger } from '../support/wire/grpc-stranger.ts';
import { readRecipe } from './page.ts';
import { serve } from './steps.ts';

interface Entry {
  readonly key: string;
  readonly value: string;
}

/** How Envoy calls them (envoy.config.route.v3.RateLimit.Action); Emissary's labels are the same under other names. */
interface Action {
  readonly request_headers?: {
    readonly header_name: string;
    readonly descriptor_key?: string;
    readonly key?: string;
  };
  readonly remote_address?: object;
}

interface Caller {
  readonly headers: Readonly<Record<string, string>>;
  readonly address: string;
}

/** An action without an entry leaves the whole descriptor out. */
function descriptorOf(actions: readonly Action[], { headers, address }: Caller): { entries: Entry[] }[] {
  const entries = actions.map(({ request_headers: header, remote_address: remote }): Entry | undefined => {
    if (remote !== undefined) return { key: 'remote_address', value: address };
    const value = headers[header?.header_name ?? ''];
    return value === undefined ? undefined : { key: header?.descriptor_key ?? header?.key ?? '', value };
  });
  const known = entries.filter((entry) => entry !== undefined);
  return known.length === entries.length ? [{ entries: known }] : [];
}

describe('the recipe: use the limiter from Envoy', function () {
  this.timeout(30_000);
  const writeFiles = temporaryFiles();
  const servers = testServers(after);
  const recipe = readRecipe('Use the limiter from Envoy');
  const envoy = parse(recipe.files['envoy.yaml'] ?? '').static_resources;
  const [manager] = envoy.listeners[0].filter_chains[0].filters;
  const [limiter, router] = manager.typed_config.http_filters;
  const [route] = manager.typed_config.route_config.virtual_hosts[0].routes;
  const [limitService, mapping] = parseAllDocuments(recipe.files['emissary.yaml'] ?? '').map((one) => one.toJS().spec);
  let server: Server;
  let stranger: Stranger;

  before(async () => {
    const { 'config/ratelimit/edge.yaml': limits = '' } = recipe.files;
    const cwd = await writeFiles({ 'config/ratelimit/edge.yaml': limits });
    server = await serve(servers, recipe.blocks('sh')[0] ?? '', cwd);
    stranger = createStranger(server.ratelimitUrl);
    servers.later(async () => stranger.close());
  });

  async function ask(domain: string, actions: readonly (readonly Action[])[], caller: Caller): Promise<unknown> {
    const descriptors = actions.flatMap((list) => descriptorOf(list, caller));
    const service = 'envoy.service.ratelimit.v3.RateLimitService';
    const answer = await stranger.call(service, 'ShouldRateLimit', { domain, descriptors });
    return 'overallCode' in answer && answer.overallCode;
  }

  /** The hundred that pass, and what the next one is answered. */
  async function spend(domain: string, actions: readonly (readonly Action[])[], key: string): Promise<void> {
    const caller = { headers: { 'x-api-key': key }, address: '10.0.0.1' };
    const codes = await Promise.all(Array.from({ length: 100 }, () => ask(domain, actions, caller)));
    assert.deepEqual([...new Set(codes)], ['OK']);
    assert.equal(await ask(domain, actions, caller), 'OVER_LIMIT');
    assert.equal(await ask(domain, actions, { ...caller, headers: { 'x-api-key': `${key}-other` } }), 'OK');
    assert.equal(await ask(domain, actions, { ...caller, headers: {} }), 'OK');
  }

  it('starts the rate-limit service alone', () => {
    assert.deepEqual([server.gatewayUrl, server.authUrl], ['', '']);
  });

  it("has Envoy's filter before the router, with a cluster that speaks HTTP/2 to the port of the service", () => {
    assert.deepEqual([limiter.name, router.name], ['envoy.filters.http.ratelimit', 'envoy.filters.http.router']);
    const { rate_limit_service: service } = limiter.typed_config;
    assert.equal(service.transport_api_version, 'V3');
    const name = service.grpc_service.envoy_grpc.cluster_name;
    const cluster = envoy.clusters.find((one: { readonly name: string }) => one.name === name);
    const [options] = Object.values<{ explicit_http_config: object }>(cluster.typed_extension_protocol_options);
    assert.deepEqual(options?.explicit_http_config, { http2_protocol_options: {} });
    const [{ endpoint }] = cluster.load_assignment.endpoints[0].lb_endpoints;
    assert.deepEqual(endpoint.address.socket_address, { address: '127.0.0.1', port_value: 8081 });
    assert.ok(envoy.clusters.some((one: { readonly name: string }) => one.name === route.route.cluster));
  });

  it('counts the descriptors of the actions for Envoy, in the domain of its filter', async () => {
    const limits: readonly { readonly actions: readonly Action[] }[] = route.route.rate_limits;
    await spend(
      limiter.typed_config.domain,
      limits.map(({ actions }) => actions),
      'from-envoy',
    );
  });

  it("counts the same for Emissary's labels, in the domain of its RateLimitService", async () => {
    assert.equal(limitService.protocol_version, 'v3');
    const groups: readonly Readonly<Record<string, readonly Action[]>>[] = mapping.labels[limitService.domain];
    await spend(limitService.domain, groups.flatMap(Object.values<readonly Action[]>), 'from-emissary');
  });

  it('shows resources of Emissary that can be read here as well', async () => {
    const directory = await writeFiles({ 'services/emissary.yaml': recipe.files['emissary.yaml'] ?? '' });
    const { errors } = await loadConfiguration(directory, { gatewayDomain: 'getambassador.io' });
    assert.deepEqual(errors, []);
  });
});
