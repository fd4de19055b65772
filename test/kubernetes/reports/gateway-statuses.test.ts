/** Tests of writing statuses of the Gateway API, with its real definitions: who else writes there loses nothing. */
import assert from 'node:assert/strict';
import type { ClusterObject, Condition, DesiredStatus } from '#config';
import { openReports, type ReportsOptions } from '../../../src/kubernetes/reports/reports.ts';
import {
  adminToken,
  type KubernetesServer,
  readerToken,
  startKubernetes,
} from '../../support/kubernetes/api-server.ts';
import { createApiClient, type KubernetesClient, type KubernetesObject } from '../../support/kubernetes/client.ts';
import { defineGatewayApi, describeWithGatewayApi } from '../../support/kubernetes/gateway-api.ts';
import { testServers } from '../../support/serve.ts';
import { eventually } from '../../support/waiting.ts';
import { clusterObject } from './verdicts.ts';

const group = 'gateway.networking.k8s.io';
const ours = 'gateway.local/gateway-controller';
const mergePatch = 'application/merge-patch+json';

interface Status {
  readonly conditions?: readonly Condition[];
  readonly parents?: readonly { readonly controllerName: string; readonly conditions: readonly Condition[] }[];
  readonly [member: string]: unknown;
}

describeWithGatewayApi('the statuses of the Gateway API', () => {
  const servers = testServers(after);
  let kubernetes: KubernetesServer;
  let namespace: string;
  before(async () => {
    kubernetes = await startKubernetes(servers);
    await defineGatewayApi(kubernetes);
  });
  beforeEach(async () => {
    namespace = await kubernetes.createNamespace();
  });

  /** Opens the reports of a replica, and records its requests. */
  function replica(token = adminToken, options: Partial<ReportsOptions> = {}) {
    const client = createApiClient({ url: kubernetes.url, ca: kubernetes.ca, token });
    const requests: string[] = [];
    const lines: string[] = [];
    /** Called before each write. */
    let onPatch: () => Promise<unknown> = async () => {};
    let running = 0;
    const request: KubernetesClient['request'] = async (method, path, ...rest) => {
      running += 1;
      requests.push(`${method} ${path.split('/').at(-1)}`);
      if (method === 'PATCH') await onPatch();
      return client.request(method, path, ...rest).finally(() => {
        running -= 1;
      });
    };
    const line = (_: object, message = '') => void lines.push(message);
    const queue = { pauseMs: 1, firstBackoffMs: 10 };
    const reports = openReports({ api: { request }, logger: { info: line, warn: line }, queue, ...options });
    servers.later(async () => {
      await reports.close();
      client.close();
    });
    return {
      ...{ reports, requests, lines },
      beforePatch(run: () => Promise<unknown>) {
        onPatch = run;
      },
      async report(...statuses: readonly DesiredStatus[]) {
        reports.reportStatuses(statuses);
        await eventually(() => assert.deepEqual([reports.writes().waiting, running], [0, 0]));
      },
    };
  }

  async function create(kind: string, name: string, spec: object): Promise<ClusterObject> {
    const metadata = kind === 'GatewayClass' ? { name } : { name, namespace };
    const [created] = await kubernetes.apply({ apiVersion: `${group}/v1`, kind, metadata, spec });
    return read(created ?? assert.fail());
  }

  /** As the reader hands it over. */
  async function read({ apiVersion, kind, metadata }: KubernetesObject): Promise<ClusterObject> {
    const object = await kubernetes.get(apiVersion, kind, metadata.name, metadata.namespace);
    return { ...clusterObject(object), namespace: metadata.namespace ?? '' };
  }

  const createClass = (name = namespace) => create('GatewayClass', name, { controllerName: ours });
  const createGateway = (gatewayClassName: string) =>
    create('Gateway', 'gate', { gatewayClassName, listeners: [{ name: 'http', port: 80, protocol: 'HTTP' }] });
  const createRoute = (kind = 'HTTPRoute', name = 'orders') =>
    create(kind, name, { parentRefs: [{ name: 'gate' }], hostnames: ['shop.example.com'] });

  async function statusOf({ apiVersion, kind, name }: ClusterObject): Promise<Status> {
    return ((await kubernetes.get(apiVersion, kind, name, namespace))['status'] ?? {}) as Status;
  }

  const patchStatus = ({ kind, name }: ClusterObject, status: object) =>
    kubernetes.request(
      'PATCH',
      `/apis/${group}/v1/namespaces/${namespace}/${kind.toLowerCase()}s/${name}/status`,
      { status },
      mergePatch,
    );

  const condition = (type: string, observedGeneration = 1, more: Partial<Condition> = {}): Condition => ({
    ...{ type, status: 'True', reason: type, message: '', observedGeneration },
    ...more,
  });
  const routeStatus = (object: ClusterObject, ...conditions: readonly Condition[]): DesiredStatus => ({
    object,
    status: {
      kind: 'Route',
      parents: [{ parentRef: { name: 'gate' }, controllerName: ours, conditions }],
    },
  });
  const foreignParent = (message: string) => ({
    parentRef: { group, kind: 'Gateway', name: 'other' },
    controllerName: 'example.com/controller',
    conditions: [{ ...condition('Accepted'), message, lastTransitionTime: '2026-01-02T03:04:05Z' }],
  });

  function typesOf({ conditions = [] }: Pick<Status, 'conditions'>): readonly string[] {
    return conditions.map(({ type, status }) => `${type} ${status}`).sort();
  }

  it('are written on GatewayClasses, Gateways, HTTPRoutes and GRPCRoutes, and once', async () => {
    const objects = [await createClass(), await createGateway(namespace)] as const;
    const [http, grpc] = [await createRoute(), await createRoute('GRPCRoute', 'calls')];
    const statuses: readonly DesiredStatus[] = [
      {
        object: objects[0],
        status: {
          kind: 'GatewayClass',
          conditions: [condition('Accepted')],
          supportedFeatures: [{ name: 'Gateway' }, { name: 'HTTPRoute' }],
        },
      },
      {
        object: objects[1],
        status: {
          kind: 'Gateway',
          addresses: [{ type: 'IPAddress', value: '192.0.2.1' }],
          conditions: [condition('Accepted'), condition('Programmed')],
          listeners: [
            {
              name: 'http',
              supportedKinds: [{ group, kind: 'HTTPRoute' }],
              attachedRoutes: 1,
              conditions: [condition('Accepted'), condition('ResolvedRefs', 1, { status: 'False' })],
            },
          ],
        },
      },
      routeStatus(http, condition('Accepted'), condition('ResolvedRefs')),
      routeStatus(grpc, condition('Accepted')),
    ];
    const { report, requests, reports } = replica();
    await report(...statuses);
    const ofClass = await statusOf(objects[0]);
    assert.deepEqual(typesOf(ofClass), ['Accepted True']);
    assert.deepEqual(ofClass['supportedFeatures'], [{ name: 'Gateway' }, { name: 'HTTPRoute' }]);
    const ofGateway = await statusOf(objects[1]);
    assert.deepEqual(typesOf(ofGateway), ['Accepted True', 'Programmed True']);
    assert.deepEqual(ofGateway['addresses'], [{ type: 'IPAddress', value: '192.0.2.1' }]);
    const [listener] = ofGateway['listeners'] as readonly (Status & { readonly attachedRoutes: number })[];
    assert.equal(listener?.attachedRoutes, 1);
    assert.deepEqual(typesOf(listener), ['Accepted True', 'ResolvedRefs False']);
    const { parents = [] } = await statusOf(http);
    assert.deepEqual(parents.map(typesOf), [['Accepted True', 'ResolvedRefs True']]);
    assert.deepEqual((await statusOf(grpc)).parents?.map(typesOf), [['Accepted True']]);
    assert.deepEqual(reports.writes().statuses, { succeeded: 4, failed: 0 });
    const count = requests.length;
    await report(...statuses);
    assert.equal(requests.length, count);
  });

  it('are not written by a second replica, nor after a restart', async () => {
    const route = await createRoute();
    await replica().report(routeStatus(route, condition('Accepted')));
    const late = replica();
    await late.report(routeStatus(route, condition('Accepted')));
    assert.deepEqual(late.requests, ['GET orders']);
    const restarted = replica();
    const now = await read({ apiVersion: route.apiVersion, kind: route.kind, metadata: { name: 'orders', namespace } });
    await restarted.report(routeStatus(now, condition('Accepted')));
    assert.deepEqual(restarted.requests, []);
  });

  it('keep the parents of another controller that writes at the same time', async () => {
    const route = await createRoute();
    const { report, requests, beforePatch } = replica();
    let writes = 0;
    beforePatch(async () => {
      writes += 1;
      if (writes === 1) await patchStatus(route, { parents: [foreignParent('theirs')] });
    });
    await report(routeStatus(route, condition('Accepted')));
    const { parents = [] } = await statusOf(route);
    assert.deepEqual(
      parents.map(({ controllerName, conditions }) => [controllerName, conditions[0]?.message]),
      [
        ['example.com/controller', 'theirs'],
        [ours, ''],
      ],
    );
    assert.deepEqual(requests, ['GET orders', 'PATCH status', 'GET orders', 'PATCH status']);
  });

  it('are written in the end, even if another controller writes before each attempt', async () => {
    const route = await createRoute();
    const { report, lines, beforePatch } = replica();
    let writes = 0;
    beforePatch(async () => {
      writes += 1;
      if (writes <= 5) await patchStatus(route, { parents: [foreignParent(`write ${writes}`)] });
    });
    await report(routeStatus(route, condition('Accepted')));
    const { parents = [] } = await statusOf(route);
    assert.deepEqual(
      parents.map(({ conditions }) => conditions[0]?.message),
      ['write 5', ''],
    );
    assert.deepEqual(lines, []);
  });

  it('lose our entry when the route has left our Gateways, and keep those of others', async () => {
    const route = await createRoute();
    const { report } = replica();
    await patchStatus(route, { parents: [foreignParent('theirs')] });
    await report(routeStatus(route, condition('Accepted')));
    assert.equal((await statusOf(route)).parents?.length, 2);
    await report({ object: route, status: { kind: 'Route', parents: [] } });
    assert.deepEqual((await statusOf(route)).parents, [foreignParent('theirs')]);
  });

  it('say the last of what changes quickly, back and forth', async () => {
    const route = await createRoute();
    const { report, reports } = replica();
    const [good, bad] = [condition('Accepted'), condition('Accepted', 1, { status: 'False' })];
    await report(routeStatus(route, good));
    for (const one of [bad, good, bad, good]) reports.reportStatuses([routeStatus(route, one)]);
    await report(routeStatus(route, bad));
    assert.deepEqual((await statusOf(route)).parents?.map(typesOf), [['Accepted False']]);
    reports.reportStatuses([routeStatus(route, good)]);
    await eventually(() => assert.equal(reports.writes().waiting, 0));
    await report(routeStatus(route, bad));
    assert.deepEqual((await statusOf(route)).parents?.map(typesOf), [['Accepted False']]);
  });

  it('do not speak of a version of an object that has been replaced', async () => {
    const route = await createRoute();
    await kubernetes.patch(
      { apiVersion: route.apiVersion, kind: route.kind, metadata: { name: route.name, namespace } },
      { spec: { hostnames: ['new.example.com'] } },
    );
    const { report, requests } = replica();
    await report(routeStatus(route, condition('Accepted')));
    assert.deepEqual(requests, ['GET orders']);
    assert.deepEqual(await statusOf(route), {});
  });

  it('are repaired some minutes after somebody has removed them', async () => {
    const route = await createRoute();
    const { report } = replica(adminToken, { againMs: 50 });
    await report(routeStatus(route, condition('Accepted')));
    await patchStatus(route, { parents: [] });
    await eventually(async () => assert.equal((await statusOf(route)).parents?.length, 1));
  });

  it('name the permission that is missing, and are written when it was granted', async () => {
    const route = await createRoute();
    const rule = { apiGroups: [group], resources: ['httproutes'], verbs: ['get'] };
    const withdraw = await kubernetes.grant('frontdesk', rule);
    const { report, lines, reports } = replica(readerToken, { againMs: 200 });
    await report(routeStatus(route, condition('Accepted')));
    assert.match(
      lines.join('\n'),
      /The status of httproutes cannot be written; everything else goes on: give .* the rule \{ apiGroups: \['gateway\.networking\.k8s\.io'\], resources: \['httproutes\/status'\], verbs: \['patch'\] \}/,
    );
    assert.ok(reports.writes().statuses.failed > 0);
    const status = { apiGroups: [group], resources: ['httproutes/status'], verbs: ['patch'] };
    const withdrawStatus = await kubernetes.grant('frontdesk', status);
    await eventually(async () => assert.equal((await statusOf(route)).parents?.length, 1));
    await Promise.all([withdraw(), withdrawStatus()]);
  });
});
