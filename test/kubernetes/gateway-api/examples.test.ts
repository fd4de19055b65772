/** The examples of config/gateway-api.md, as they are printed: a real API server accepts them, and frontdesk serves them whole. */
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { type ClusterObject, createGatewayApi, createObjectAcceptance } from '#config';
import { yamlBlocksOf } from '../../support/documented-examples.ts';
import { type KubernetesServer, startKubernetes } from '../../support/kubernetes/api-server.ts';
import type { KubernetesObject } from '../../support/kubernetes/client.ts';
import { clusterObject } from '../../support/kubernetes/cluster-objects.ts';
import { defineGatewayApi, describeWithGatewayApi } from '../../support/kubernetes/gateway-api.ts';
import { runCommand } from '../../support/programs/command.ts';
import { testServers } from '../../support/serve.ts';
import { eventually } from '../../support/waiting.ts';
import { makeCertificate } from '../../support/wire/certificate.ts';

const blocks = yamlBlocksOf('config/gateway-api.md').map((text) =>
  parseAllDocuments(text).map((one) => one.toJS() as KubernetesObject),
);

describeWithGatewayApi('the examples of config/gateway-api.md', () => {
  const servers = testServers(after);
  let kubernetes: KubernetesServer;
  /** What the examples name, and the page says that it is there. */
  let named: readonly ClusterObject[];
  before(async () => {
    kubernetes = await startKubernetes(servers);
    await defineGatewayApi(kubernetes);
    const { stdout } = await runCommand(['crds']);
    await kubernetes.apply(...parseAllDocuments(stdout).map((one) => one.toJS() as KubernetesObject));
    await eventually(() => kubernetes.list('gateway.local/v1', 'RoutePolicy'));
    for (const name of ['frontdesk', 'shop'])
      await kubernetes.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
    named = await namedObjects();
  });

  async function namedObjects(): Promise<readonly ClusterObject[]> {
    const directory = await mkdtemp(join(tmpdir(), 'frontdesk-examples-'));
    servers.later(() => rm(directory, { recursive: true, force: true }));
    const { cert, key } = (await makeCertificate(directory, 'DNS:*.shop.example')) ?? assert.fail('needs openssl');
    const base64 = (text: string) => Buffer.from(text).toString('base64');
    const issuer = { issuer: 'https://issuer.example', audiences: ['shop'], jwks_uri: 'https://issuer.example/keys' };
    return [
      clusterObject('GatewayClass', '/frontdesk', { spec: { controllerName: 'gateway.local/gateway-controller' } }, ''),
      clusterObject(
        'Secret',
        'frontdesk/shop-tls',
        { data: { 'tls.crt': base64(cert), 'tls.key': base64(key) } },
        'v1',
      ),
      clusterObject('Service', 'shop/orders', { spec: { ports: [{ port: 80 }] } }, 'v1'),
      clusterObject('JwtProvider', 'frontdesk/issuer', { spec: issuer }),
      clusterObject('AuthService', 'frontdesk/tokens', {
        spec: { auth_service: 'frontdesk:auth', providers: ['issuer'] },
      }),
    ];
  }

  /** The object with the defaults of its definition. It is not stored. */
  async function accepted({ apiVersion, kind, metadata, ...rest }: KubernetesObject): Promise<ClusterObject> {
    const plural = `${kind.toLowerCase().replace(/cy$/, 'cie')}s`;
    const path = `/apis/${apiVersion}/namespaces/${metadata.namespace}/${plural}?dryRun=All&fieldValidation=Strict`;
    const { status, body } = await kubernetes.request('POST', path, { apiVersion, kind, metadata, ...rest });
    assert.equal(status, 201, JSON.stringify(body));
    return clusterObject(kind, `${metadata.namespace}/${metadata.name}`, Object(body), apiVersion);
  }

  /** What is said about objects, beside those that they name and the Gateways of the page. */
  async function faultsOf(objects: readonly ClusterObject[]): Promise<readonly string[]> {
    const ports = { http: [80], https: [443] };
    const trusted = ['frontdesk'];
    const all = [...named, ...objects];
    const records = all.filter(({ apiVersion }) => apiVersion === 'gateway.local/v1');
    const rest = all.filter((object) => !records.includes(object));
    const { routes, notices } = await createGatewayApi({ trusted, addresses: [], ports }).resolve(rest, records);
    const options = { gatewayDomain: 'gateway.local', directory: '.', strictPaths: true, findUnservable: () => [] };
    const { verdicts } = await createObjectAcceptance({ ...options, trusted }).accept([...records, ...routes]);
    assert.ok(routes.length > 0);
    return [...notices, ...verdicts.flatMap(({ errors }) => errors)].map(({ message }) => message);
  }

  it('are accepted by the API server, and served without a fault', async () => {
    assert.ok(blocks.length >= 2);
    const gateways = blocks.flat().filter(({ kind }) => kind === 'Gateway');
    for (const block of blocks) {
      const objects = [...new Set([...gateways, ...block])];
      assert.deepEqual(await faultsOf(await Promise.all(objects.map(accepted))), []);
    }
  });
});
