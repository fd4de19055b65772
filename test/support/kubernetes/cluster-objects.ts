/** Objects of a cluster as its reader hands them over, each younger than the one before. */
import type { ClusterObject } from '#config';

let created = 0;

/** `path` is the namespace and the name: `shop/orders`. */
export function clusterObject(
  kind: string,
  path: string,
  value: object,
  apiVersion = 'gateway.local/v1',
): ClusterObject {
  const [namespace = '', name = ''] = path.split('/');
  created += 1;
  const createdAt = new Date(created * 1000).toISOString();
  return { apiVersion, kind, namespace, name, uid: `${kind} ${path}`, createdAt, value };
}

export function resource(kind: string, path: string, spec: object): ClusterObject {
  return clusterObject(kind, path, { spec });
}

/** A Service with records as text. */
export function annotated(path: string, records: string, domain = 'gateway.local'): ClusterObject {
  return clusterObject('Service', path, { metadata: { annotations: { [`${domain}/config`]: records } } }, 'v1');
}
