/** Plays the controllers of a cluster: runs the pods of Deployments on a node, and writes the EndpointSlices of Services. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { KubernetesClient, KubernetesObject } from '../client.ts';
import type { PodNode } from './node.ts';

export interface Controllers {
  /** Rejects if they failed. */
  readonly close: () => Promise<void>;
}

type Labels = Readonly<Record<string, string>>;

interface Pod {
  readonly namespace: string;
  readonly labels: Labels;
  readonly address: string;
}

interface DeploymentSpec {
  readonly replicas: number;
  readonly template: PodTemplate;
}

interface PodTemplate {
  readonly metadata: { readonly labels: Labels };
  readonly spec: { readonly containers: readonly { readonly env?: readonly { readonly name: string }[] }[] };
}

interface ServiceSpec {
  readonly selector?: Labels;
  readonly ports: readonly { readonly name?: string; readonly protocol: string; readonly targetPort: number }[];
}

const pauseMs = 50;

/** Pods never end, and Services keep their selector. */
export function startControllers(kubernetes: KubernetesClient, node: PodNode): Controllers {
  const pods = new Map<string, readonly Pod[]>();
  const podsOfServices = new Map<string, number>();
  let isClosed = false;

  async function runDeployments(): Promise<void> {
    for (const deployment of await listAll(kubernetes, '/apis/apps/v1/deployments')) {
      const { uid = '' } = deployment.metadata;
      if (!pods.has(uid)) pods.set(uid, await runDeployment(kubernetes, node, deployment));
    }
  }

  async function connectServices(): Promise<void> {
    for (const service of await listAll(kubernetes, '/api/v1/services')) {
      const { uid = '' } = service.metadata;
      const selected = [...pods.values()].flat().filter((pod) => selects(service, pod));
      if (selected.length === (podsOfServices.get(uid) ?? 0)) continue;
      await kubernetes.apply(sliceOf(service, selected));
      podsOfServices.set(uid, selected.length);
    }
  }

  async function control(): Promise<void> {
    while (!isClosed) {
      await runDeployments();
      await connectServices();
      await sleep(pauseMs);
    }
  }

  const controlling = control();
  controlling.catch(() => {});
  return {
    close() {
      isClosed = true;
      return controlling;
    },
  };
}

async function listAll(kubernetes: KubernetesClient, path: string): Promise<readonly KubernetesObject[]> {
  const { body } = await kubernetes.request('GET', path);
  return (body as { items: readonly KubernetesObject[] }).items;
}

function runDeployment(
  kubernetes: KubernetesClient,
  node: PodNode,
  { metadata, spec }: KubernetesObject,
): Promise<readonly Pod[]> {
  const { replicas, template } = spec as DeploymentSpec;
  // The tests take what precedes the last two hyphens as the name of the Deployment.
  const names = Array.from({ length: replicas }, (_, index) => `${metadata.name}-pod-${index}`);
  return Promise.all(
    names.map((name) => runPod(kubernetes, node, { namespace: metadata.namespace ?? '', name }, template)),
  );
}

async function runPod(
  kubernetes: KubernetesClient,
  node: PodNode,
  metadata: { readonly namespace: string; readonly name: string },
  { metadata: { labels }, spec }: PodTemplate,
): Promise<Pod> {
  const isGrpc = spec.containers.some(({ env = [] }) => env.some(({ name }) => name === 'GRPC_ECHO_SERVER'));
  const address = await node.run({ ...metadata, isGrpc });
  await kubernetes.apply({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { ...metadata, labels },
    spec: { ...spec, nodeName: 'node' },
  });
  const status = {
    phase: 'Running',
    conditions: [{ type: 'Ready', status: 'True' }],
    podIP: address,
    podIPs: [{ ip: address }],
  };
  const path = `/api/v1/namespaces/${metadata.namespace}/pods/${metadata.name}/status`;
  await kubernetes.request('PATCH', path, { status }, 'application/merge-patch+json');
  return { namespace: metadata.namespace, labels, address };
}

function selects({ metadata, spec }: KubernetesObject, { namespace, labels }: Pod): boolean {
  const { selector } = spec as ServiceSpec;
  if (selector === undefined || namespace !== metadata.namespace) return false;
  return Object.entries(selector).every(([name, value]) => labels[name] === value);
}

function sliceOf({ metadata, spec }: KubernetesObject, pods: readonly Pod[]): KubernetesObject {
  const { name, namespace } = metadata;
  const { ports } = spec as ServiceSpec;
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: {
      name: `${name}-pods`,
      ...(namespace && { namespace }),
      labels: { 'kubernetes.io/service-name': name },
    },
    addressType: 'IPv4',
    endpoints: pods.map(({ address }) => ({ addresses: [address], conditions: { ready: true } })),
    ports: ports.map((port) => ({
      ...(port.name && { name: port.name }),
      protocol: port.protocol,
      port: port.targetPort,
    })),
  };
}
