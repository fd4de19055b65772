/** Objects for tests: Services with records, EndpointSlices, and definitions of kinds without a schema. */
import type { KubernetesObject } from './client.ts';

/** A Service with a port 80 and, unless it is empty, a text of records. */
export function serviceOf(namespace: string, name: string, records = '', domain = 'gateway.local'): KubernetesObject {
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name, namespace, ...(records !== '' && { annotations: { [`${domain}/config`]: records } }) },
    spec: { clusterIP: 'None', ports: [{ name: 'http', port: 80 }] },
  };
}

/** The text of a Mapping. */
export function mappingText(name: string, prefix = `/${name}/`, service = name): string {
  return JSON.stringify({ apiVersion: 'gateway/v1', kind: 'Mapping', name, prefix, service });
}

export function sliceOf(
  namespace: string,
  service: string,
  addresses: readonly string[],
  port = 8080,
): KubernetesObject {
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name: `${service}-1`, namespace, labels: { 'kubernetes.io/service-name': service } },
    addressType: 'IPv4',
    endpoints: addresses.map((address) => ({ addresses: [address], conditions: { ready: true } })),
    ports: [{ name: 'http', port }],
  };
}

/** A CustomResourceDefinition that accepts any spec and has a status. */
export function definitionOf(group: string, kind: string, versions: readonly string[] = ['v1']): KubernetesObject {
  const plural = `${kind.toLowerCase().replace(/y$/, 'ie')}s`;
  const anything = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.${group}` },
    spec: {
      group,
      scope: 'Namespaced',
      names: { kind, plural, singular: kind.toLowerCase() },
      versions: versions.map((name, index) => ({
        name,
        served: true,
        storage: index === 0,
        schema: { openAPIV3Schema: { type: 'object', properties: { spec: anything, status: anything } } },
        subresources: { status: {} },
      })),
    },
  };
}
