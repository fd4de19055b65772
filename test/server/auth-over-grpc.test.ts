/** A gateway that asks frontdesk's auth service in another process over gRPC. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:http2';
import request from 'supertest';
import { authRecord, demoRecord, desksOf, mappingRecord } from '../support/desks.ts';
import { testServers } from '../support/serve.ts';
import { startUpstream } from '../support/upstream.ts';

describe("frontdesk's auth service in another process, with proto: grpc", () => {
  const servers = testServers();
  const openDesk = desksOf(servers);

  async function setUp(context: Readonly<Record<string, string>> = {}) {
    const upstream = await startUpstream(servers);
    const records = [
      mappingRecord('app', '/', upstream.origin, { auth_context_extensions: context }),
      { ...authRecord, proto: 'grpc' as const, protocol_version: 'v3' as const },
    ];
    const config = { records, users: [demoRecord] };
    const away = await openDesk({ demo: false, only: ['auth'], config, trustedProxies: ['127.0.0.1'] });
    const { auth } = await away.listen();
    const serviceAddresses = { auth: `127.0.0.1:${auth.port}` };
    const desk = await openDesk({ demo: false, only: ['gateway'], config, serviceAddresses, adminUsers: ['demo'] });
    const { gateway } = await desk.listen();
    return { upstream, desk, client: request(gateway.url), auth, away };
  }

  it('names its users, and challenges others with the error body of the gateway', async () => {
    const { upstream, client } = await setUp({ tier: 'gold' });
    await client.get('/a').auth('demo', 'demo').set('X_Travel_User', 'admin').expect(200);
    const { headers } = upstream.only();
    assert.deepEqual([headers['x-travel-user'], headers['x_travel_user']], ['demo', undefined]);
    const denied = await client.get('/a').auth('demo', 'guess').expect(401);
    assert.match(denied.headers['www-authenticate'] ?? '', /^Basic realm="api"/);
    assert.match(denied.body.info_url ?? '', /\/gateway\/v0\/problems\/unauthorized$/);
    assert.equal(upstream.reached.length, 1);
  });

  it('serves HTTP on the same port', async () => {
    const { auth } = await setUp();
    await request(auth.url).get('/').auth('demo', 'demo').expect(200).expect('X-Travel-User', 'demo');
  });

  it('is shown in explanations and diagnostics', async () => {
    const { desk, client, auth } = await setUp({ tier: 'gold' });
    const target = `http://127.0.0.1:${auth.port} (gRPC)`;
    const explained = await desk.explain({ method: 'GET', url: '/a?b=1', user: 'ann' });
    const found = explained.auth;
    assert.ok(found?.asked);
    assert.deepEqual([found.target, found.method, found.path], [target, 'GET', '/a?b=1']);
    assert.match(found.on_success, /^after OK, the request continues with the changes in the response/);
    assert.equal(found.on_refusal, 'a denial is sent to the client');
    assert.deepEqual(found.context, ['tier']);
    const { body } = await client.get('/gateway/v0/diag/').auth('demo', 'demo').set('Accept', 'application/json');
    const services: readonly Record<string, string>[] = body.services;
    assert.ok(
      services.some((one) => one['target'] === target),
      JSON.stringify(services),
    );
  });

  it('rejects requests while it is down, and lets them pass again later', async () => {
    const { upstream, client, away } = await setUp();
    await away.close();
    await client.get('/a').auth('demo', 'demo').expect(503).expect('Retry-After', /\d/);
    assert.equal(upstream.reached.length, 0);
  });

  it('refuses what it cannot serve with a status that no caller takes for permission, whatever the content type', async () => {
    const { auth } = await setUp();
    const session = connect(auth.url);
    servers.later(() => session.destroy());
    const long = 'x'.repeat(6000);
    const head = { 'content-type': 'application/grpc', 'x-a': long, 'x-b': long, 'x-c': long };
    const stream = session.request({ ':method': 'POST', ':path': '/shop.Carts/Add', ...head });
    const [headers] = await once(stream.end(), 'response');
    assert.equal(headers[':status'], 431);
  });
});
