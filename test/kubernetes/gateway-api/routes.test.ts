/** The Gateway API in a real API server: routes of Gateways are served and guarded like records. */
import assert from 'node:assert/strict';
import { get } from 'node:http';
import { adminToken, type KubernetesServer, startKubernetes } from '../../support/kubernetes/api-server.ts';
import type { KubernetesObject } from '../../support/kubernetes/client.ts';
import { defineGatewayApi, describeWithGatewayApi } from '../../support/kubernetes/gateway-api.ts';
import {
  conditionsIn,
  gateway,
  gatewayApiVersion,
  gatewayClass,
  httpListener,
  httpRoute,
  policyFilter,
  serviceObject,
  withSpec,
} from '../../support/kubernetes/gateway-objects.ts';
import { definitionOf } from '../../support/kubernetes/objects.ts';
import { resolvesPods, runPods } from '../../support/kubernetes/pods.ts';
import { runFrontdesk, startServer } from '../../support/programs/frontdesk-process.ts';
import { seriesOf } from '../../support/scrape.ts';
import { testServers } from '../../support/serve.ts';
import { startUpstream } from '../../support/upstream.ts';
import { eventually } from '../../support/waiting.ts';

describeWithGatewayApi('Gateways of a cluster', () => {
  const servers = testServers(after);
  let kubernetes: KubernetesServer;
  let gatewayUrl: string;
  let adminUrl: string;
  before(async () => {
    kubernetes = await startKubernetes(servers);
    await defineGatewayApi(kubernetes);
    await kubernetes.apply(...['AuthService', 'RoutePolicy'].map((kind) => definitionOf('gateway.local', kind)));
    await kubernetes.apply(gatewayClass, gateway('edge', [httpListener]));
    await runService('orders');
    const env = { KUBECONFIG: await kubernetes.kubeconfig(adminToken), ...settings, ...resolvesPods, ADMIN_PORT: '0' };
    const server = await startServer(['--kubernetes'], { env, cwd: '/' });
    servers.later(server.stop);
    ({ gatewayUrl, adminUrl } = server);
  });

  async function runService(name: string, status = 200): Promise<void> {
    const upstream = await startUpstream(servers, (res) => void res.writeHead(status).end());
    await kubernetes.apply(serviceObject(name));
    await runPods(kubernetes, { name }, [upstream.port]);
  }

  const statusIs = (expected: number, host: string, path = '/any') =>
    eventually(async () => assert.equal(await statusOf(gatewayUrl + path, host), expected));

  const conditionsAre = ({ kind, metadata: { name, namespace } }: KubernetesObject, ...expected: readonly string[]) =>
    eventually(async () => {
      const found = await kubernetes.get(gatewayApiVersion, kind, name, namespace);
      assert.deepEqual(conditionsIn(found), expected);
    });

  const unservedRoutesAre = (expected: number) =>
    eventually(async () => {
      const series = seriesOf(await (await fetch(`${adminUrl}/metrics`)).text());
      assert.equal(series['frontdesk_kubernetes_unserved HTTPRoute'], expected);
    });

  it('serves a route, and says so in the statuses of its class, its Gateway and itself', async () => {
    const route = httpRoute('shop', [{ backendRefs: [orders] }]);
    await kubernetes.apply(route);
    await statusIs(200, 'shop.example');
    await statusIs(404, 'other.example');
    await conditionsAre(gatewayClass, 'Accepted');
    await conditionsAre(
      gateway('edge', []),
      'Accepted Programmed',
      'http: Accepted ResolvedRefs Programmed, 1 attached',
    );
    await conditionsAre(route, 'edge: Accepted ResolvedRefs');
    await kubernetes.remove(route);
    await statusIs(404, 'shop.example');
  });

  it('answers 500 for a backend that does not exist, until it does', async () => {
    const route = httpRoute('stock', [{ backendRefs: [{ name: 'stock', port: 80 }] }]);
    await kubernetes.apply(route);
    await statusIs(500, 'stock.example');
    await conditionsAre(route, 'edge: Accepted ResolvedRefs=False (BackendNotFound)');
    await unservedRoutesAre(1);
    await runService('stock', 201);
    await statusIs(201, 'stock.example');
    await unservedRoutesAre(0);
    await conditionsAre(route, 'edge: Accepted ResolvedRefs');
    await kubernetes.remove(route);
  });

  it('asks the AuthService about routes, unless a RoutePolicy says otherwise', async () => {
    await runService('guard', 401);
    const guard = own('AuthService', 'guard', { auth_service: 'guard', proto: 'http' });
    const closed = httpRoute('closed', [{ backendRefs: [orders] }]);
    const open = httpRoute('open', [{ backendRefs: [orders], filters: [policyFilter('open')] }]);
    await kubernetes.apply(guard, closed, open);
    await statusIs(401, 'closed.example');
    await statusIs(500, 'open.example');
    await conditionsAre(open, 'edge: Accepted ResolvedRefs=False (FilterNotFound)');
    await kubernetes.apply(own('RoutePolicy', 'open', { bypass_auth: true }));
    await statusIs(200, 'open.example');
    await kubernetes.apply(own('RoutePolicy', 'open', { auth_service: 'guard' }));
    await statusIs(401, 'open.example');
    await Promise.all([guard, closed, open].map(kubernetes.remove));
  });

  it('lets check list routes with what is wrong, and explain say which rule a request gets, and why', async () => {
    const broken = { name: 'none', port: 80, weight: 3 };
    const rules = [
      { matches: [{ path: { value: '/v1' } }], backendRefs: [orders, broken], filters: [policyFilter('small')] },
      { matches: [{ path: { value: '/v1/old' } }], backendRefs: [broken] },
    ];
    const listed = httpRoute('listed', rules);
    const lost = withSpec(httpRoute('lost', [{ backendRefs: [orders] }]), {
      parentRefs: [{ name: 'edge', sectionName: 'none' }],
    });
    await kubernetes.apply(own('RoutePolicy', 'small', { max_request_bytes: 7 }), listed, lost);
    const env = { KUBECONFIG: await kubernetes.kubeconfig(adminToken), ...settings };
    const run = async (...args: readonly string[]) => runFrontdesk([...args, '--kubernetes'], { env, cwd: '/' });

    const checked = await run('check');
    assert.equal(checked.code, 0);
    const text = checked.stdout + checked.stderr;
    assert.match(text, /HTTPRoute default\/lost {2}the Gateway has no listener none, but http \(80\)\n/);
    assert.match(text, /HTTPRoute default\/listed {2}there is no Service default\/none\n/);
    assert.match(text, /^\/v1 .* 25 % +-> +orders\.default:80 .* httproute\/default\/listed\/1\/1, /m);
    assert.match(text, /^\/v1 .* 75 % +-> +no backend \(500\) .* httproute\/default\/listed\/1\/2, /m);
    assert.match(text, /^ +sets +max_request_bytes: 7$/m);
    assert.match(text, /set bypass_auth: true in .* RoutePolicies of the routes, that are open on purpose/);

    const share = (await run('explain', 'GET', 'http://listed.example/v1/a')).stdout;
    assert.match(
      share,
      /source +HTTPRoute default\/listed\n +matches +\/v1 {2}over http {2}host listed.example {2}25 %\n/,
    );
    assert.match(share, /body +at most 7 bytes\n/);
    assert.match(share, /policy +RoutePolicy default\/small: max_request_bytes\n/);
    const fault = (await run('explain', 'GET', 'http://listed.example/v1/old')).stdout;
    assert.match(fault, /rejected with 500 \(no-backend\): there is no Service default\/none\n/);
    await Promise.all([listed, lost].map(kubernetes.remove));
  });

  it('serves nothing without the class or the Gateway, and says so', async () => {
    const route = httpRoute('late', [{ backendRefs: [orders] }]);
    const edge = gateway('edge', [httpListener]);
    await kubernetes.apply(route);
    await conditionsAre(route, 'edge: Accepted ResolvedRefs');
    await kubernetes.remove(gatewayClass);
    await statusIs(404, 'late.example');
    await conditionsAre(
      edge,
      'Accepted=False (Pending) Programmed=False (Invalid)',
      'http: Accepted=False (Pending) ResolvedRefs Programmed=False (Invalid), 0 attached',
    );
    await conditionsAre(route, 'edge: Accepted=False (NoMatchingParent) ResolvedRefs');
    await kubernetes.remove(edge);
    await conditionsAre(route);
    await kubernetes.apply(gatewayClass, edge);
    await statusIs(200, 'late.example');
    await conditionsAre(route, 'edge: Accepted ResolvedRefs');
    await kubernetes.remove(route);
  });

  it('does not count a Gateway of a namespace that is not trusted', async () => {
    const team = await kubernetes.createNamespace('team');
    const own = gateway('own', [httpListener], team);
    const route = httpRoute('theirs', [{ backendRefs: [orders] }], team);
    await kubernetes.apply(own, withSpec(route, { parentRefs: [{ name: 'own' }] }));
    await conditionsAre(
      own,
      'Accepted=False (NotTrusted) Programmed=False (Invalid)',
      'http: Accepted=False (NotTrusted) ResolvedRefs Programmed=False (Invalid), 0 attached',
    );
    await conditionsAre(route, 'own: Accepted=False (NoMatchingParent) ResolvedRefs=False (BackendNotFound)');
    await statusIs(404, 'theirs.example');
  });
});

const settings = { KUBERNETES_GATEWAY_API: 'true', KUBERNETES_GATEWAY_ADDRESSES: '127.0.0.1' };

const orders = { name: 'orders', port: 80 };

function own(kind: string, name: string, spec: object): KubernetesObject {
  return { apiVersion: 'gateway.local/v1', kind, metadata: { name, namespace: 'default' }, spec };
}

function statusOf(url: string, host: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    get(url, { headers: { host } }, (res) => resolve(res.resume().statusCode)).on('error', reject);
  });
}
