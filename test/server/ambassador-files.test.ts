/** Serves files of Ambassador: what they protect stays protected. */
import assert from 'node:assert/strict';
import type { FrontdeskOptions } from '../../src/index.ts';
import { call, desksOf } from '../support/desks.ts';
import { testServers } from '../support/serve.ts';
import { untyped } from '../support/untyped.ts';

describe('files of Ambassador', () => {
  const servers = testServers(after);
  const open = desksOf(servers);
  let service: string;
  let auth: string;

  before(async () => {
    const [quote, guard] = await Promise.all([
      servers.http(({ url }, response) => void response.end(url)),
      servers.http(({ headers }, response) => void response.writeHead(headers.authorization ? 200 : 401).end()),
    ]);
    service = `127.0.0.1:${quote.port}`;
    auth = `127.0.0.1:${guard.port}`;
  });

  const serve = (records: readonly object[], options: FrontdeskOptions = {}) =>
    open({ config: untyped({ records }), gatewayDomain: 'getambassador.io', demo: false, ...options });

  const resource = (kind: string, name: string, spec: object) => ({
    apiVersion: 'getambassador.io/v2',
    kind,
    metadata: { name, namespace: 'default' },
    spec,
  });

  async function checkGuarded(...records: object[]): Promise<void> {
    const desk = await serve(records);
    await call(desk, '/secret/x').expect(401);
    await call(desk, '/secret/x').set('Authorization', 'Bearer ann').expect(200, '/x');
  }

  it('guard the mappings of an exported cluster, whose API marks the ids', async () => {
    const ambassador_id = ['--apiVersion-v3alpha1-only--default'];
    const items = [
      resource('AuthService', 'authentication', { ambassador_id, auth_service: auth }),
      resource('Mapping', 'secret', { ambassador_id, prefix: '/secret/', service }),
    ];
    await checkGuarded({ apiVersion: 'v1', kind: 'List', items });
  });

  const secret = () => resource('Mapping', 'secret', { prefix: '/secret/', service });
  const annotated = () => {
    const record = { apiVersion: 'ambassador/v1', kind: 'AuthService', name: 'authentication', auth_service: auth };
    return { metadata: { name: 'app', annotations: { 'getambassador.io/config': JSON.stringify(record) } } };
  };

  it('guard them if the AuthService is in the annotation of an Ingress', async () => {
    await checkGuarded({ apiVersion: 'networking.k8s.io/v1', kind: 'Ingress', ...annotated() }, secret());
  });

  it('guard them if the AuthService is in a ServiceList, or is a Module of Ambassador 0.x', async () => {
    await checkGuarded({ apiVersion: 'v1', kind: 'ServiceList', items: [annotated()] }, secret());
    const config = { auth_service: auth };
    await checkGuarded({ apiVersion: 'ambassador/v0', kind: 'Module', name: 'authentication', config }, secret());
  });

  it('do not start without their gateway domain, even if only an annotation contains the AuthService', async () => {
    const manifest = { apiVersion: 'v1', kind: 'Service', ...annotated() };
    await assert.rejects(serve([manifest], { gatewayDomain: 'gateway.local' }), /gatewayDomain=getambassador\.io/);
  });

  it('add a slash by a redirect beside the mapping of the path with the slash', async () => {
    const redirect = { prefix: '/one', host_redirect: true, path_redirect: '/one/', service: 'x.example' };
    const records = [
      resource('AuthService', 'authentication', { auth_service: auth }),
      resource('Mapping', 'add-slash', redirect),
      resource('Mapping', 'one', { prefix: '/one/', service, rewrite: '' }),
    ];
    const desk = await serve(records, { strictPaths: true });
    await call(desk, '/one').expect(301).expect('Location', 'http://x.example/one/');
    for (const path of ['/one/', '/one/two']) {
      await call(desk, path).expect(401);
      await call(desk, path).set('Authorization', 'Bearer ann').expect(200, path);
    }
  });
});
