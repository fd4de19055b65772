/** Tests of finding the API server: what a kubeconfig may contain, the service account of a pod, and messages for mistakes. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { readClusterOnce } from '#kubernetes';
import {
  adminToken,
  describeWithKubernetes,
  type KubernetesServer,
  kubeconfigOf,
  readerToken,
  startKubernetes,
} from '../support/kubernetes/api-server.ts';
import { definitionOf, mappingText, serviceOf, sliceOf } from '../support/kubernetes/objects.ts';
import { testServers } from '../support/serve.ts';
import { temporaryFiles } from '../support/temporary-files.ts';

type Environment = Readonly<Record<string, string>>;

function read(environment: Environment, serviceAccountDirectory?: string) {
  return readClusterOnce({ environment, gatewayDomain: 'gateway.local', namespaces: [], serviceAccountDirectory });
}

describeWithKubernetes('the connection to a cluster', () => {
  const shared = testServers(after);
  const writeFiles = temporaryFiles();
  let kubernetes: KubernetesServer;
  let shop: string;
  before(async () => {
    kubernetes = await startKubernetes(shared);
    shop = await kubernetes.createNamespace();
    await kubernetes.apply(
      serviceOf(shop, 'orders', mappingText('orders')),
      serviceOf(shop, 'plain'),
      sliceOf(shop, 'plain', ['10.1.0.1']),
    );
    await kubernetes.apply(definitionOf('gateway.local', 'Mapping'));
    const metadata = { name: 'users', namespace: shop };
    await kubernetes.apply({
      apiVersion: 'gateway.local/v1',
      kind: 'Mapping',
      metadata,
      spec: { prefix: '/users/', service: 'users' },
    });
  });

  /** Objects of one namespace, as `Service orders`. */
  async function objectsRead(environment: Environment, directory?: string) {
    const { objects } = await read(environment, directory);
    return objects.records.map(({ kind, name }) => `${kind} ${name}`).sort();
  }

  const everything = ['Mapping users', 'Service orders'];
  const base64 = async (file: string) => (await readFile(file)).toString('base64');

  function kubeconfig(user: object, cluster: object = {}) {
    const whole = kubeconfigOf({ url: kubernetes.url, caFile: kubernetes.caFile, token: '' });
    return JSON.stringify({
      ...whole,
      users: [{ name: 'test', user }],
      clusters: [
        { name: 'test', cluster: { server: kubernetes.url, 'certificate-authority': kubernetes.caFile, ...cluster } },
      ],
    });
  }

  it('reads everything once: objects with records, Services and EndpointSlices', async () => {
    const { namespace, objects, services, slices } = await read({
      KUBECONFIG: await kubernetes.kubeconfig(adminToken, shop),
    });
    assert.equal(namespace, shop);
    assert.deepEqual(objects.records.map(({ kind, name }) => `${kind} ${name}`).sort(), everything);
    assert.deepEqual(services.map(({ metadata }) => metadata.name).sort(), ['kubernetes', 'orders', 'plain']);
    assert.deepEqual(
      slices.map(({ metadata }) => metadata.name),
      ['plain-1'],
    );
  });

  it('uses the credentials of a kubeconfig in each of their forms', async () => {
    const { file, keyFile } = kubernetes.clientCertificate;
    const { caFile, url } = kubernetes;
    const users: readonly object[] = [
      { token: adminToken },
      { tokenFile: 'token', token: 'the file counts' },
      { 'client-certificate': file, 'client-key': keyFile },
      { 'client-certificate-data': await base64(file), 'client-key-data': await base64(keyFile) },
    ];
    const clusters: readonly object[] = [
      { 'certificate-authority': undefined, 'certificate-authority-data': await base64(caFile) },
      { 'certificate-authority': undefined, 'insecure-skip-tls-verify': true },
      { server: url.replace('127.0.0.1', 'localhost'), 'tls-server-name': 'kubernetes.default.svc' },
      { server: `${url}/` },
    ];
    const texts = [
      ...users.map((user) => kubeconfig(user)),
      ...clusters.map((cluster) => kubeconfig({ token: adminToken }, cluster)),
    ];
    for (const config of texts) {
      const directory = await writeFiles({ config, token: `${adminToken}\n` });
      assert.deepEqual(await objectsRead({ KUBECONFIG: join(directory, 'config') }), everything, config);
    }
  });

  it('merges several files, of which the first entry with a name counts and some may be missing', async () => {
    const whole = { ...kubeconfigOf({ url: kubernetes.url, caFile: kubernetes.caFile, token: 'wrong' }) };
    const directory = await writeFiles({
      context: JSON.stringify({ 'current-context': 'test', users: [{ name: 'test', user: { token: adminToken } }] }),
      whole: JSON.stringify({ ...whole, 'current-context': 'other' }),
    });
    const files = ['missing', 'context', 'whole'].map((name) => join(directory, name));
    assert.deepEqual(await objectsRead({ KUBECONFIG: files.join(':') }), everything);
  });

  it('reads ~/.kube/config without KUBECONFIG', async () => {
    const HOME = await writeFiles({ '.kube/config': kubeconfig({ token: adminToken }) });
    assert.deepEqual(await objectsRead({ HOME }), everything);
  });

  it('uses the service account in a pod, unless KUBECONFIG is set', async () => {
    const directory = await writeFiles({ token: `${adminToken}\n`, namespace: shop, 'ca.crt': kubernetes.ca });
    const pod = { KUBERNETES_SERVICE_HOST: '127.0.0.1', KUBERNETES_SERVICE_PORT: `${kubernetes.port}` };
    assert.deepEqual(await objectsRead(pod, directory), everything);
    assert.equal((await read(pod, directory)).namespace, shop);
    const outside = { ...pod, KUBECONFIG: await kubernetes.kubeconfig(adminToken) };
    assert.equal((await read(outside, directory)).namespace, 'default');
  });

  it('says what is missing when the server cannot be trusted, or does not accept the credentials', async () => {
    const cases: readonly (readonly [config: string, message: RegExp])[] = [
      [
        kubeconfig({ token: 'unknown' }),
        /the kinds of the API server cannot be read: https:\S+ does not accept the credentials of the context test of .*: create a new token/,
      ],
      [
        kubeconfig({ token: adminToken }, { 'certificate-authority': undefined }),
        /no answer from https:.*(?:SELF_SIGNED|UNABLE_TO_VERIFY)\S*\): check certificate-authority and tls-server-name/,
      ],
      [
        kubeconfig({ token: adminToken }, { 'tls-server-name': 'other.example' }),
        /no answer from https:.*ERR_TLS_CERT_ALTNAME_INVALID\): check certificate-authority and tls-server-name/,
      ],
      [
        kubeconfig({ token: readerToken }),
        /^services cannot be read: no permission .*\nendpointslices.discovery.k8s.io .*\nmappings.gateway.local .*give get, list and watch on mappings.gateway.local in a ClusterRole$/,
      ],
    ];
    for (const [config, message] of cases) {
      const directory = await writeFiles({ config });
      await assert.rejects(read({ KUBECONFIG: join(directory, 'config') }), { message });
    }
  });
});

describe('a connection to a cluster that is configured wrongly', () => {
  const writeFiles = temporaryFiles();
  const context = { name: 'test', context: { cluster: 'test', user: 'test' } };
  const cluster = { name: 'test', cluster: { server: 'https://127.0.0.1:1' } };
  const whole = {
    'current-context': 'test',
    contexts: [context],
    clusters: [cluster],
    users: [{ name: 'test', user: {} }],
  };
  const userOf = (user: object) => ({ ...whole, users: [{ name: 'test', user }] });
  const clusterOf = (fields: object) => ({
    ...whole,
    clusters: [{ name: 'test', cluster: { ...cluster.cluster, ...fields } }],
  });

  const cases: readonly (readonly [title: string, config: object, message: RegExp])[] = [
    [
      'no current context',
      { ...whole, 'current-context': '' },
      /config has no current-context: choose one with kubectl config use-context/,
    ],
    [
      'an unknown context',
      { ...whole, 'current-context': 'live' },
      /^the current-context of \S+config needs the context "live", which does not exist: there is test\.$/,
    ],
    [
      'an unknown cluster',
      { ...whole, clusters: [] },
      /^the context test of \S+ needs the cluster "test", which does not exist: there is none/,
    ],
    ['an unknown user', { ...whole, users: [] }, /needs the user "test"/],
    [
      'a server without TLS',
      clusterOf({ server: 'http://127.0.0.1:1' }),
      /the server of the cluster test must be an https URL, not "http:/,
    ],
    [
      'a proxy',
      clusterOf({ 'proxy-url': 'http://127.0.0.1:3128' }),
      /has proxy-url, but frontdesk calls the API server directly/,
    ],
    [
      'a program for credentials',
      userOf({ exec: { command: 'aws' } }),
      /the user test has exec, but frontdesk runs no program for credentials\. Use a service account: kubectl create token/,
    ],
    [
      'a provider of credentials',
      userOf({ 'auth-provider': { name: 'gcp' } }),
      /auth-provider, but frontdesk has no such provider/,
    ],
    ['a password', userOf({ username: 'admin', password: 'secret' }), /username, but API servers accept no passwords/],
    ['another identity', userOf({ as: 'root' }), /as, but frontdesk does not act as another user/],
    ['a missing file', userOf({ tokenFile: 'token' }), /tokenFile \S+\/token cannot be read: ENOENT/],
  ];

  for (const [title, config, message] of cases)
    it(`is an error that says what to do: ${title}`, async () => {
      const directory = await writeFiles({ config: JSON.stringify(config) });
      await assert.rejects(read({ KUBECONFIG: join(directory, 'config') }), { message });
    });

  it('is an error with its line in a file that is not YAML', async () => {
    const directory = await writeFiles({ config: 'contexts:\n\t- name: test' });
    await assert.rejects(read({ KUBECONFIG: join(directory, 'config') }), {
      message: /config:2 {2}this is not valid YAML/,
    });
  });

  it('is an error if there is neither a kubeconfig nor a pod', async () => {
    const HOME = await writeFiles();
    await assert.rejects(read({ HOME }), {
      message: `no cluster was found: ${HOME}/.kube/config does not exist. Set KUBECONFIG to a kubeconfig file, or run frontdesk in a pod.`,
    });
  });

  it('calls an IPv6 address of a pod', async () => {
    const directory = await writeFiles({ token: 'token', namespace: 'shop', 'ca.crt': '' });
    const message = /no answer from https:\/\/\[::1\]:1: /;
    await assert.rejects(read({ KUBERNETES_SERVICE_HOST: '::1', KUBERNETES_SERVICE_PORT: '1' }, directory), {
      message,
    });
  });

  it('is an error if a pod has no service account', async () => {
    const directory = await writeFiles();
    const message =
      /\/token does not exist: .* it needs its service account\. Remove automountServiceAccountToken: false/;
    await assert.rejects(read({ KUBERNETES_SERVICE_HOST: 'fd00::1' }, directory), { message });
  });
});
