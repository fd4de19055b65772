/** Tests of the API server that other tests run against: objects, permissions, tokens, and a restart with all objects. */
import assert from 'node:assert/strict';
import {
  describeWithKubernetes,
  type KubernetesServer,
  readerToken,
  startKubernetes,
} from '../support/kubernetes/api-server.ts';
import { createApiClient } from '../support/kubernetes/client.ts';
import { testServers } from '../support/serve.ts';
import { eventually } from '../support/waiting.ts';

const configMaps = '/api/v1/namespaces/default/configmaps';

describeWithKubernetes('the API server of the tests', () => {
  const servers = testServers(after);
  let kubernetes: KubernetesServer;
  before(async () => {
    kubernetes = await startKubernetes(servers);
  });

  async function clientOf(token: string) {
    const client = createApiClient({ url: kubernetes.url, ca: kubernetes.ca, token });
    servers.later(client.close);
    return client;
  }

  it('keeps objects, also over a restart', async () => {
    const namespace = await kubernetes.createNamespace();
    const object = {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'one', namespace },
      data: { key: 'value' },
    };
    await kubernetes.apply(object);
    await kubernetes.patch(object, { data: { key: 'other' } });
    await kubernetes.kill();
    await kubernetes.start();
    assert.deepEqual((await kubernetes.get('v1', 'ConfigMap', 'one', namespace))['data'], { key: 'other' });
    await kubernetes.remove(object);
    assert.deepEqual(await kubernetes.list('v1', 'ConfigMap', namespace), []);
  });

  it('gives a user only what was granted', async () => {
    const reader = await clientOf(readerToken);
    assert.equal((await reader.request('GET', configMaps)).status, 403);
    const withdraw = await kubernetes.grant('frontdesk', {
      apiGroups: [''],
      resources: ['configmaps'],
      verbs: ['list'],
    });
    await eventually(async () => assert.equal((await reader.request('GET', configMaps)).status, 200));
    await withdraw();
    await eventually(async () => assert.equal((await reader.request('GET', configMaps)).status, 403));
  });

  it('makes tokens of service accounts, which can be revoked', async () => {
    const namespace = await kubernetes.createNamespace();
    const account = await kubernetes.createServiceAccount(namespace, 'robot');
    const [first, second] = [await account.createToken(), await account.createToken()];
    const [one, other] = [await clientOf(first.token), await clientOf(second.token)];
    assert.equal((await one.request('GET', '/api/v1')).status, 200);
    await first.revoke();
    await eventually(async () => assert.equal((await one.request('GET', '/api/v1')).status, 401), 100);
    assert.equal((await other.request('GET', '/api/v1')).status, 200);
  });
});
