/** Plays the controllers and nodes of a cluster: ports of this machine are the pods of Services. */
import { fileURLToPath } from 'node:url';
import type { KubernetesClient, KubernetesObject } from './client.ts';

/** The API server accepts no loopback address, so pods have a name that `resolvesPods` resolves to this machine. */
const podName = 'a.pod.example';

/** The environment of a process that can call pods. */
export const resolvesPods = Object.freeze({
  NODE_OPTIONS: `--import=${fileURLToPath(new URL('pod-names.ts', import.meta.url))}`,
});

/** Writes the EndpointSlice of a Service that exists: each of its ports leads to one of these ports, which are ready pods. */
export async function runPods(
  kubernetes: KubernetesClient,
  { namespace = 'default', name }: { readonly namespace?: string; readonly name: string },
  ports: readonly number[],
): Promise<readonly KubernetesObject[]> {
  const service = await kubernetes.get('v1', 'Service', name, namespace);
  return kubernetes.apply(...ports.map((port, index) => podSlice(service, port, index)));
}

/** A slice with one pod that listens on `port`. */
export function podSlice(service: KubernetesObject, port: number, index = 0): KubernetesObject {
  const { name, namespace } = service.metadata;
  const { ports } = service['spec'] as { ports: readonly { name?: string }[] };
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: {
      name: `${name}-${index}`,
      ...(namespace && { namespace }),
      labels: { 'kubernetes.io/service-name': name },
    },
    addressType: 'FQDN',
    endpoints: [{ addresses: [podName], conditions: { ready: true } }],
    ports: ports.map((one) => ({ ...(one.name && { name: one.name }), port })),
  };
}
