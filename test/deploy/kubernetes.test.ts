/** The manifests for Kubernetes: a real API server accepts them, and its service account may do just what frontdesk does. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { cp, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { parseAllDocuments } from 'yaml';
import { controllerName, listSettings, parseSettings } from '#config';
import { settingTable } from '#server/product';
import {
  adminToken,
  describeWithKubernetes,
  type KubernetesServer,
  startKubernetes,
} from '../support/kubernetes/api-server.ts';
import type { KubernetesObject } from '../support/kubernetes/client.ts';
import { defineGatewayApi, describeWithGatewayApi } from '../support/kubernetes/gateway-api.ts';
import { startServer } from '../support/programs/frontdesk-process.ts';
import { describeWith } from '../support/programs/installed.ts';
import { testServers } from '../support/serve.ts';
import { temporaryFiles, type WriteFiles } from '../support/temporary-files.ts';
import { startUpstream } from '../support/upstream.ts';
import { eventually } from '../support/waiting.ts';
import { configurationOf, parseDockerfile } from './dockerfile.ts';

interface Container {
  readonly args: readonly string[];
  readonly ports: readonly { readonly name: string; readonly containerPort: number }[];
  readonly [probe: `${string}Probe`]: { readonly httpGet: { readonly path: string; readonly port: string } };
}

interface Pod {
  readonly terminationGracePeriodSeconds: number;
  readonly containers: readonly [Container];
}

const root = new URL('../..', import.meta.url);
const manifests = fileURLToPath(new URL('config/deploy/kubernetes', root));
const account = 'system:serviceaccount:frontdesk:frontdesk';

describeWith('kubectl', 'the manifests for Kubernetes', () => {
  const writeFiles = temporaryFiles();
  let base: readonly KubernetesObject[];
  let example: readonly KubernetesObject[];
  /** All components but `gateway-api`. */
  let everything: readonly KubernetesObject[];
  /** All components but `https`, which `gateway-api` replaces. */
  let gateways: readonly KubernetesObject[];

  before(async () => {
    [base, example, everything, gateways] = await Promise.all([
      kustomize(join(manifests, 'base')),
      kustomize(join(manifests, 'overlays/example')),
      kustomize(join(await withComponents(writeFiles, 'gateway-api'), 'overlays/example')),
      kustomize(join(await withComponents(writeFiles, 'https'), 'overlays/example')),
    ]);
  });

  it('give every setting a name and a value that frontdesk accepts', async () => {
    const image = configurationOf(lastStage(await readFile(new URL('Dockerfile', root), 'utf8')));
    for (const objects of [base, example, everything, gateways]) {
      const { data } = find(objects, 'ConfigMap', /^frontdesk-settings-/) as unknown as {
        data: Record<string, string>;
      };
      const known = new Set(listSettings(settingTable).map(({ variable }) => variable));
      assert.deepEqual(
        Object.keys(data).filter((name) => !known.has(name)),
        [],
      );
      assert.doesNotThrow(() => parseSettings(settingTable, { ...image.env, ...data }));
    }
  });

  it('allow more time for a stop than a stop may take', () => {
    const { data } = find(base, 'ConfigMap', /^frontdesk-settings-/) as unknown as { data: Record<string, string> };
    const { drainMs, shutdownTimeoutMs } = parseSettings(settingTable, data);
    assert.ok(podOf(base).terminationGracePeriodSeconds * 1000 > drainMs + shutdownTimeoutMs + 1000);
  });

  it('name the ports of the image, and probe its admin port', async () => {
    const image = configurationOf(lastStage(await readFile(new URL('Dockerfile', root), 'utf8')));
    const [container] = podOf(base).containers;
    assert.deepEqual(
      container.ports.map(({ containerPort }) => containerPort),
      image.ports,
    );
    const { startupProbe, livenessProbe, readinessProbe } = container;
    assert.deepEqual(
      [startupProbe?.httpGet, livenessProbe?.httpGet, readinessProbe?.httpGet].map(
        (get) => `${get?.port} ${get?.path}`,
      ),
      ['admin /livez', 'admin /livez', 'admin /readyz'],
    );
    assert.equal(container.ports.find(({ name }) => name === 'admin')?.containerPort, Number(image.env['ADMIN_PORT']));
  });

  describeWithKubernetes('on an API server', () => {
    const servers = testServers(after);
    let kubernetes: KubernetesServer;
    let config: string;

    before(async () => {
      kubernetes = await startKubernetes(servers);
      config = await kubernetes.kubeconfig(adminToken);
      await kubernetes.apply(serviceMonitorDefinition);
      const namespaces = await kustomize(join(manifests, 'base'));
      await apply(namespaces.filter(({ kind }) => kind === 'Namespace'));
    });

    for (const [name, objects] of [
      ['base', () => base],
      ['example', () => example],
      ['example with all components but gateway-api', () => everything],
    ] as const)
      it(`are accepted without a warning: the ${name}`, async () => {
        const { stdout, stderr } = await apply(objects(), '--dry-run=server');
        assert.equal(stderr, '');
        assert.equal(stdout.trim().split('\n').length, objects().length);
      });

    it('start pods that the namespace admits, which enforces the restricted profile', async () => {
      for (const objects of [base, everything, gateways]) {
        const { template } = find(objects, 'Deployment', /./)['spec'] as { template: object };
        const pod = { apiVersion: 'v1', kind: 'Pod', ...template };
        const { status, body } = await kubernetes.request('POST', pods, {
          ...pod,
          metadata: { ...('metadata' in pod && (pod.metadata as object)), name: 'one' },
        });
        assert.equal(status, 201, JSON.stringify(body));
      }
      const privileged = { containers: [{ name: 'one', image: 'one' }] };
      const { status } = await kubernetes.request('POST', pods, {
        ...{ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'one' }, spec: privileged },
      });
      assert.equal(status, 403);
    });

    it('allow the service account to read records and addresses, to report on them, and nothing else', async () => {
      await apply(base.filter(({ kind }) => isPermission(kind)));
      assert.deepEqual(await allowedTo(account), [...reads, ...reports].toSorted());
    });

    it('allow it to read the records of Emissary as well, if they are chosen', async () => {
      await apply(everything.filter(({ kind }) => isPermission(kind)));
      assert.deepEqual(await allowedTo(account), [...reads, ...reports, ...emissaryReads].toSorted());
    });

    describeWithGatewayApi('with the Gateway API', () => {
      before(() => defineGatewayApi(kubernetes));

      it('are accepted without a warning: the example with all components but https', async () => {
        const { stdout, stderr } = await apply(gateways, '--dry-run=server');
        assert.equal(stderr, '');
        assert.equal(stdout.trim().split('\n').length, gateways.length);
      });

      it('open the ports 80 and 443 for its Gateways, and have a GatewayClass', async () => {
        const { ports } = find(gateways, 'Service', /^frontdesk$/)['spec'] as { ports: object[] };
        assert.deepEqual(ports, [
          { name: 'https', port: 443, targetPort: 'https' },
          { name: 'http', port: 80, targetPort: 'http' },
        ]);
        const { data } = find(gateways, 'ConfigMap', /^frontdesk-settings-/) as unknown as {
          data: { TLS_PORT: string };
        };
        const https = podOf(gateways).containers[0].ports.find(({ name }) => name === 'https');
        assert.equal(String(https?.containerPort), data.TLS_PORT);
        const { ingress } = find(gateways, 'NetworkPolicy', /./)['spec'] as { ingress: readonly [{ ports: object[] }] };
        assert.deepEqual(ingress[0].ports, [{ port: 'http' }, { port: 'https' }]);
        await apply(gateways.filter(({ kind }) => kind === 'GatewayClass'));
        const { spec } = await kubernetes.get('gateway.networking.k8s.io/v1', 'GatewayClass', 'frontdesk');
        assert.deepEqual(spec, { controllerName });
      });

      it('allow the service account to read it with its Secrets, to write statuses, and nothing else', async () => {
        await apply(base.filter(({ kind }) => isPermission(kind)));
        const before = await allowedTo(account);
        await apply(gateways.filter(({ kind }) => isPermission(kind)));
        const added = (await allowedTo(account)).filter((right) => !before.includes(right));
        const emissary = new Set(emissaryReads);
        assert.deepEqual(
          added.filter((right) => !emissary.has(right)),
          gatewayRights,
        );
      });

      it('start a frontdesk that is ready, can read all that it needs, and accepts its GatewayClass', async () => {
        await apply(gateways.filter(({ kind }) => isPermission(kind) || kind === 'GatewayClass'));
        const { data } = find(gateways, 'ConfigMap', /^frontdesk-settings-/) as unknown as {
          data: Record<string, string>;
        };
        const { adminUrl, stdout } = await start({ ...data, TLS_PORT: '0' });
        await eventually(async () => assert.equal((await fetch(`${adminUrl}/readyz`)).status, 200));
        await eventually(async () => {
          const { status } = await kubernetes.get('gateway.networking.k8s.io/v1', 'GatewayClass', 'frontdesk');
          assert.match(JSON.stringify(status), /"status":"True","type":"Accepted"/);
        });
        assert.doesNotMatch(stdout(), /forbidden|"level":[56]0/);
      });
    });

    it('start a frontdesk that is ready, can read all that it needs, and routes by a Service', async () => {
      const upstream = await startUpstream(servers);
      const record = {
        apiVersion: 'gateway/v1',
        kind: 'Mapping',
        name: 'shop',
        prefix: '/shop',
        service: upstream.origin,
      };
      // Only a trusted namespace may name this machine, as the namespace of frontdesk is.
      await kubernetes.apply({
        ...{ apiVersion: 'v1', kind: 'Service', spec: { ports: [{ port: 80 }] } },
        metadata: {
          ...{ name: 'shop', namespace: 'frontdesk' },
          annotations: { 'gateway.local/config': JSON.stringify({ ...record, bypass_auth: true }) },
        },
      });
      const { data } = find(base, 'ConfigMap', /^frontdesk-settings-/) as unknown as { data: Record<string, string> };
      const { adminUrl, gatewayUrl, stdout } = await start(data);
      await eventually(async () => assert.equal((await fetch(`${adminUrl}/readyz`)).status, 200));
      await eventually(async () => assert.equal((await fetch(`${gatewayUrl}/shop`)).status, 200));
      assert.doesNotMatch(stdout(), /forbidden|"level":[56]0/);
    });

    /** Starts frontdesk as a pod would, with these settings. */
    async function start(settings: Readonly<Record<string, string>>) {
      const { createToken } = await kubernetes.createServiceAccount('frontdesk', 'frontdesk');
      const KUBECONFIG = await kubernetes.kubeconfig((await createToken()).token, 'frontdesk');
      const [{ args }] = podOf(base).containers;
      const env = { ...settings, KUBECONFIG, ADMIN_PORT: '0', DRAIN_MS: '0' };
      const started = await startServer(args.slice(1), { env, cwd: await mounted() });
      servers.later(started.stop);
      return started;
    }

    /** The limits and users of the example, where the pod has them. */
    async function mounted(): Promise<string> {
      const files = join(manifests, 'overlays/example');
      return writeFiles({
        'config/ratelimit/limits.yaml': await readFile(join(files, 'limits.yaml'), 'utf8'),
        'config/users.yaml': await readFile(join(files, 'users.yaml'), 'utf8'),
      });
    }

    const pods = '/api/v1/namespaces/frontdesk/pods?dryRun=All';

    async function apply(objects: readonly KubernetesObject[], ...options: readonly string[]) {
      const list = JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects });
      const directory = await writeFiles({ 'objects.json': list });
      const args = ['apply', ...options, '-f', join(directory, 'objects.json')];
      return promisify(execFile)('kubectl', ['--kubeconfig', config, ...args]);
    }

    /** Asks about every verb on every resource of the server, and on those of records. */
    async function allowedTo(user: string): Promise<readonly string[]> {
      const resources = [...(await discover()), ...recordResources];
      const asked = resources.flatMap((resource) => verbs.map((verb) => ({ verb, ...resource })));
      const answers = await Promise.all(
        asked.map(async ({ verb, group, resource }) => {
          const [name, subresource] = resource.split('/');
          const attributes = { verb, group, resource: name, subresource, namespace: 'shop' };
          const groups = ['system:serviceaccounts', 'system:serviceaccounts:frontdesk'];
          const spec = { user, groups, resourceAttributes: attributes };
          const review = { apiVersion: 'authorization.k8s.io/v1', kind: 'SubjectAccessReview', spec };
          const { body } = await kubernetes.request(
            'POST',
            '/apis/authorization.k8s.io/v1/subjectaccessreviews',
            review,
          );
          const { allowed } = (body as { status: { allowed: boolean } }).status;
          return allowed ? [`${verb} ${group}/${resource}`] : [];
        }),
      );
      return answers.flat().toSorted();
    }

    async function discover(): Promise<readonly { readonly group: string; readonly resource: string }[]> {
      const get = async (path: string) => (await kubernetes.request('GET', path)).body;
      const { groups } = (await get('/apis')) as {
        groups: { name: string; preferredVersion: { groupVersion: string } }[];
      };
      const known = groups.filter(({ name }) => !recordResources.some(({ group }) => group === name));
      const paths = known.map(({ name, preferredVersion }) => ({
        name,
        path: `/apis/${preferredVersion.groupVersion}`,
      }));
      const lists = [{ name: '', path: '/api/v1' }, ...paths].map(async ({ name, path }) => {
        const { resources } = (await get(path)) as { resources: { name: string }[] };
        return resources.map((resource) => ({ group: name, resource: resource.name }));
      });
      return (await Promise.all(lists)).flat();
    }
  });
});

const verbs = ['get', 'list', 'watch', 'create', 'update', 'patch', 'delete', 'deletecollection'];
const kinds = ['authservices', 'jwtproviders', 'mappings', 'ratelimitservices', 'routepolicies', 'versions'];
/** Some of Emissary's kinds. */
const emissaryKinds = ['filterpolicies', 'hosts', 'mappings', 'modules'];
const recordResources = [
  ...kinds.flatMap((kind) => [kind, `${kind}/status`]).map((resource) => ({ group: 'gateway.local', resource })),
  ...emissaryKinds
    .flatMap((kind) => [kind, `${kind}/status`])
    .map((resource) => ({ group: 'getambassador.io', resource })),
];

const readsOf = (...names: readonly string[]) =>
  names.flatMap((name) => ['get', 'list', 'watch'].map((verb) => `${verb} ${name}`));
const reads = readsOf('/services', 'discovery.k8s.io/endpointslices', ...kinds.map((kind) => `gateway.local/${kind}`));
const reports = [
  'create /events',
  'get /events',
  'patch /events',
  ...kinds.map((kind) => `patch gateway.local/${kind}/status`),
];
const emissaryReads = readsOf(
  'networking.k8s.io/ingresses',
  ...emissaryKinds.flatMap((kind) => [`getambassador.io/${kind}`, `getambassador.io/${kind}/status`]),
);

const routeKinds = ['gateways', 'grpcroutes', 'httproutes'];
const gatewayRights = [
  ...readsOf(
    '/namespaces',
    ...['gatewayclasses', 'referencegrants', ...routeKinds].map((kind) => `gateway.networking.k8s.io/${kind}`),
  ),
  ...['list /secrets', 'watch /secrets'],
  ...['gatewayclasses', ...routeKinds].map((kind) => `patch gateway.networking.k8s.io/${kind}/status`),
].toSorted();

function isPermission(kind: string): boolean {
  return ['ServiceAccount', 'ClusterRole', 'ClusterRoleBinding'].includes(kind);
}

/** Copies the manifests, with the comments of the example's components removed, except for one of them. */
async function withComponents(writeFiles: WriteFiles, except: 'gateway-api' | 'https'): Promise<string> {
  const directory = await writeFiles();
  await cp(manifests, directory, { recursive: true });
  const file = join(directory, 'overlays/example/kustomization.yaml');
  const text = await readFile(file, 'utf8');
  const uncommented = text.replace(/^ {2}# - (\.\.\/\S+)/gm, (line, path: string) =>
    path.endsWith(`/${except}`) ? line : `  - ${path}`,
  );
  assert.notEqual(uncommented, text);
  await writeFile(file, uncommented);
  return directory;
}

async function kustomize(directory: string): Promise<readonly KubernetesObject[]> {
  const { stdout } = await promisify(execFile)('kubectl', ['kustomize', directory]);
  return parseAllDocuments(stdout).map((document) => document.toJS());
}

function find(objects: readonly KubernetesObject[], kind: string, name: RegExp): KubernetesObject {
  const found = objects.find((one) => one.kind === kind && name.test(one.metadata.name));
  return found ?? assert.fail(`there is no ${kind}`);
}

function podOf(objects: readonly KubernetesObject[]): Pod {
  return (find(objects, 'Deployment', /./)['spec'] as { template: { spec: Pod } }).template.spec;
}

function lastStage(dockerfile: string) {
  return parseDockerfile(dockerfile).at(-1) ?? assert.fail('the Dockerfile has no stage');
}

/** Of the Prometheus operator, without the schema. */
const serviceMonitorDefinition = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'servicemonitors.monitoring.coreos.com' },
  spec: {
    group: 'monitoring.coreos.com',
    scope: 'Namespaced',
    names: {
      plural: 'servicemonitors',
      singular: 'servicemonitor',
      kind: 'ServiceMonitor',
      listKind: 'ServiceMonitorList',
    },
    versions: [
      {
        ...{ name: 'v1', served: true, storage: true },
        schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
      },
    ],
  },
};
