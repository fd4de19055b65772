/** Verdicts about objects, as the acceptance gives them. */
import type { ConfigurationError, ObjectVerdict } from '#config';
import type { KubernetesObject } from '../../support/kubernetes/client.ts';

export function clusterObject({ apiVersion, kind, metadata, ...rest }: KubernetesObject): ObjectVerdict['object'] {
  const { name, namespace = 'default', uid = `uid of ${name}` } = metadata;
  const createdAt = String(metadata['creationTimestamp'] ?? '2026-01-02T03:04:05Z');
  return { apiVersion, kind, namespace, name, uid, createdAt, value: { apiVersion, kind, metadata, ...rest } };
}

export function accepted(object: KubernetesObject, ...notices: readonly ConfigurationError[]): ObjectVerdict {
  return { object: clusterObject(object), state: 'accepted', errors: [], notices, consequence: undefined };
}

export const closed = 'requests that it matches are answered with 503';

export function refused(object: KubernetesObject, ...errors: readonly ConfigurationError[]): ObjectVerdict {
  return { object: clusterObject(object), state: 'refused', errors, notices: [], consequence: closed };
}

export function errorOf(
  { kind, metadata }: KubernetesObject,
  message: string,
  more: Partial<ConfigurationError> = {},
): ConfigurationError {
  const file = `${kind} ${metadata.namespace ?? 'default'}/${metadata.name}`;
  return { source: { file, line: 0 }, record: `${kind} ${metadata.name}`, message, remedy: 'prefix: /v1', ...more };
}

export function mappingOf(name: string, namespace = 'default', more: object = {}): KubernetesObject {
  return {
    apiVersion: 'gateway.local/v1',
    kind: 'Mapping',
    metadata: { name, namespace, generation: 1 },
    spec: {},
    ...more,
  };
}
