/** Extracts the records from Kubernetes manifests: from the annotation of a Service, and from the items of a List. */
import {
  type ConfigDocument,
  type ConfigurationError,
  errorsOf,
  type PlacedFault,
  suggestion,
  typeName,
  valueAt,
} from './errors.ts';
import { readYaml } from './yaml.ts';

/** The documents of the records, which are not checked yet, and the errors of the manifest around them. */
interface Unfolded {
  readonly records: readonly ConfigDocument[];
  readonly errors: readonly ConfigurationError[];
}

/** Returns the records in a List or in the annotation of a Service. Returns any other document unchanged. */
export function unfoldManifest(document: ConfigDocument, gatewayDomain: string): Unfolded {
  const kind = valueAt(document.value, ['kind']);
  const items = valueAt(document.value, ['items']);
  if (kind === 'List' && Array.isArray(items)) {
    const parts = items.map((item, index) => unfoldManifest(itemOf(document, item, index), gatewayDomain));
    return { records: parts.flatMap(({ records }) => records), errors: parts.flatMap(({ errors }) => errors) };
  }
  return kind === 'Service' ? readManifest(document, `${gatewayDomain}/config`) : { records: [document], errors: [] };
}

/** Returns an item of a List, which is what `kubectl get -o yaml` prints for several resources. */
function itemOf({ file, lineAt, placeWithin }: ConfigDocument, value: unknown, index: number): ConfigDocument {
  const within = (path: readonly PropertyKey[]) => ['items', index, ...path];
  return {
    value,
    file,
    lineAt: (path) => lineAt(within(path)),
    placeWithin: (path, record) => placeWithin(within(path), record),
  };
}

function readManifest(document: ConfigDocument, key: string): Unfolded {
  const { value } = document;
  const name = valueAt(value, namePath);
  const record = typeof name === 'string' ? `Service ${name}` : 'Service';
  const annotation = valueAt(value, [...annotationsPath, key]);
  const errors = errorsOf(document, manifestFaults(value, key), record);
  if (typeof annotation !== 'string') return { records: [], errors };
  const namespace = valueAt(value, ['metadata', 'namespace']);
  const place = document.placeWithin([...annotationsPath, key], record);
  const inner = readYaml(annotation, place, (found) => ({ ...found, namespace }));
  return { records: inner.results, errors: [...errors, ...inner.errors] };
}

const namePath = ['metadata', 'name'];
const annotationsPath = ['metadata', 'annotations'];

function manifestFaults(manifest: unknown, key: string): readonly PlacedFault[] {
  const name = valueAt(manifest, namePath);
  const faults: PlacedFault[] = [];
  if (valueAt(manifest, ['apiVersion']) !== 'v1') {
    faults.push({ path: ['apiVersion'], message: 'a Service must have apiVersion v1', remedy: 'Write apiVersion: v1' });
  }
  if (typeof name !== 'string' || name === '') {
    const remedy = 'Name the service: metadata: { name: hotel }';
    faults.push({ path: namePath, message: 'metadata.name is missing', remedy });
  }
  return [...faults, ...annotationFaults(valueAt(manifest, annotationsPath), key)];
}

function annotationFaults(annotations: unknown, key: string): readonly PlacedFault[] {
  if (annotations === undefined) return [];
  if (typeof annotations !== 'object' || annotations === null) {
    const message = `metadata.annotations must be a map, not ${typeName(annotations)}`;
    return [{ path: annotationsPath, message, remedy: `Indent ${key} below it, or remove it.` }];
  }
  const value = valueAt(annotations, [key]);
  if (value === undefined) return mistypedKeys(annotations, key);
  if (typeof value === 'string') return [];
  const message = `the annotation ${key} must be a string, not ${typeName(value)}`;
  return [{ path: [...annotationsPath, key], message, remedy: `Put a "|" after the key: ${key}: |` }];
}

/** Ignores other annotations, but reports keys similar to ours, whose records would otherwise be ignored silently. */
function mistypedKeys(annotations: object, key: string): readonly PlacedFault[] {
  return Object.keys(annotations)
    .filter((other) => suggestion(other, [key]) !== undefined)
    .map((other) => ({
      path: [...annotationsPath, other],
      message: `the annotation ${other} is not read, did you mean ${key}?`,
      remedy: `Write ${key}, or set GATEWAY_DOMAIN to the part before the slash.`,
    }));
}
