/** Envoy that calls frontdesk's auth service over gRPC, and the same service of a gateway that asks it like Envoy does. */
import assert from 'node:assert/strict';
import request from 'supertest';
import { demoRecord, desksOf } from '../support/desks.ts';
import { envoyConfiguration, httpFilter, limitCluster } from '../support/programs/envoy-configuration.ts';
import { freePort } from '../support/programs/free-port.ts';
import { describeWith } from '../support/programs/installed.ts';
import { envoy, type ProxyProcess, startProxy } from '../support/programs/proxy-process.ts';
import { testServers } from '../support/serve.ts';
import { startUpstream, type Upstream } from '../support/upstream.ts';
import { rawRequest, sendRaw } from '../support/wire/raw-client.ts';

/** The cluster is that of any service over HTTP/2. */
const clusterName = 'limits';

/** Envoy turns the 401 into the status UNAUTHENTICATED for clients of gRPC. */
const unauthenticated = /^HTTP\/1\.1 (?:401 |200 OK\r\n.*\r\ngrpc-status: 16\r\n)/s;

/** An Envoy at the edge that asks the service on `auth` about every request. */
function edge(port: number, target: number, auth: number, more: object = {}): string {
  const filter = httpFilter('ext_authz', 'ext_authz.v3.ExtAuthz', {
    transport_api_version: 'V3',
    grpc_service: { envoy_grpc: { cluster_name: clusterName }, timeout: '20s' },
    ...more,
  });
  const manager = { use_remote_address: true };
  return envoyConfiguration({ port, target, manager, filters: [filter], clusters: [limitCluster(auth)] });
}

describeWith('envoy', "Envoy with frontdesk's auth service over gRPC", () => {
  const servers = testServers(after);
  const openDesk = desksOf(servers);
  let upstream: Upstream;
  let proxy: ProxyProcess;
  let authPort: number;

  async function startEdge(auth: number, more: object = {}): Promise<ProxyProcess> {
    const port = await freePort();
    const started = await startProxy(envoy, edge(port, upstream.port, auth, more), port);
    servers.later(started.remove);
    return started;
  }

  before(async () => {
    upstream = await startUpstream(servers);
    const config = { records: [], users: [demoRecord] };
    const desk = await openDesk({ demo: false, only: ['auth'], config, trustedProxies: ['127.0.0.1'] });
    const { auth } = await desk.listen();
    authPort = auth.port;
    proxy = await startEdge(authPort);
  });

  const reachedBy = (act: () => Promise<unknown>) => upstream.reachedBy(act);

  it('names the user to the service, with every method and path', async () => {
    for (const method of ['get', 'post', 'put', 'patch', 'delete', 'options'] as const) {
      const [reached] = await reachedBy(() =>
        request(proxy.origin)[method]('/a%2Fb?c').auth('demo', 'demo').expect(200),
      );
      assert.deepEqual([reached?.url, reached?.headers['x-travel-user']], ['/a%2Fb?c', 'demo']);
    }
  });

  it('sends the challenge and the error body to other clients, in the form that they accept', async () => {
    const reached = await reachedBy(async () => {
      const json = await request(proxy.origin).get('/a').auth('demo', 'guess').expect(401);
      assert.equal(json.headers['www-authenticate'], 'Basic realm="api", charset="UTF-8"');
      assert.equal(json.headers['content-type'], 'application/json');
      assert.deepEqual(json.body, { code: 401, message: '401: Unauthorized' });
      const html = await request(proxy.origin).get('/a').set('Accept', 'text/html').expect(401);
      assert.match(html.text, /<html/);
    });
    assert.deepEqual(reached, []);
  });

  it('removes identity headers of the client, in every spelling', async () => {
    const forged = ['X-Travel-User', 'X_Travel_User', 'X.Travel.User', 'X-Api-Key-Name'].map(
      (name) => `${name}: admin`,
    );
    const signed = [...forged, `Authorization: Basic ${btoa('demo:demo')}`];
    const [reached] = await reachedBy(() => sendRaw(proxy.port, rawRequest('GET /', signed)));
    const names = reached?.names.filter((name) => /travel|key/.test(name));
    assert.deepEqual([names, reached?.headers['x-travel-user']], [['x-travel-user'], 'demo']);
  });

  it('sends headers as they are, and bodies, if it is configured so', async () => {
    const other = await startEdge(authPort, {
      encode_raw_headers: true,
      include_peer_certificate: true,
      include_tls_session: true,
      with_request_body: { max_request_bytes: 1024, allow_partial_message: true, pack_as_bytes: true },
    });
    const [reached] = await reachedBy(() =>
      request(other.origin).post('/').auth('demo', 'demo').send({ a: 1 }).expect(200),
    );
    assert.deepEqual([reached?.body, reached?.headers['x-travel-user']], ['{"a":1}', 'demo']);
    await request(other.origin).post('/').send({ a: 1 }).expect(401);
  });

  it('throttles the logins of one client by the address that Envoy reports, not by one that the client claims', async () => {
    const guess = (address: string) =>
      request(proxy.origin).get('/').auth('ann', 'guess').set('X-Forwarded-For', address).expect(401);
    for (let time = 0; time < 11; time += 1) await guess(`203.0.113.${time}`);
    const { headers } = await guess('203.0.113.99');
    assert.match(headers['retry-after'] ?? '', /^\d+$/);
    await request(proxy.origin).get('/').auth('demo', 'demo').expect(200);
  });

  it('rejects requests while the service is down', async () => {
    const down = await startEdge((await servers.refusing()).port);
    const reached = await reachedBy(() => request(down.origin).get('/').auth('demo', 'demo').expect(403));
    assert.deepEqual(reached, []);
  });

  it('does not let a request pass whose path and headers are those of a call, if it checks over HTTP and HTTP/2', async () => {
    const uri = { uri: `http://127.0.0.1:${authPort}`, cluster: clusterName, timeout: '20s' };
    const all = { patterns: [{ safe_regex: { regex: '.*' } }] };
    for (const body of [{}, { with_request_body: { max_request_bytes: 1024, allow_partial_message: true } }]) {
      const port = await freePort();
      const filter = httpFilter('ext_authz', 'ext_authz.v3.ExtAuthz', {
        transport_api_version: 'V3',
        http_service: { server_uri: uri },
        allowed_headers: all,
        ...body,
      });
      const clusters = [limitCluster(authPort)];
      const text = envoyConfiguration({ port, target: upstream.port, filters: [filter], clusters });
      const started = await startProxy(envoy, text, port);
      servers.later(started.remove);
      const head = ['Content-Type: application/grpc', 'TE: trailers', 'Content-Length: 5'];
      const reached = await reachedBy(async () => {
        for (const path of ['/envoy.service.auth.v3.Authorization/Check', '/shop.Carts/Add'])
          assert.match(await sendRaw(port, rawRequest(`POST ${path}`, head, '\0\0\0\0\0')), unauthenticated);
      });
      assert.deepEqual(reached, []);
    }
  });
});
