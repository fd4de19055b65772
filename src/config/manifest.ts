/** Kubernetes Services as service manifests: takes the records out of the annotation and keeps their lines. */
import {
  type ConfigDocument,
  type ConfigurationError,
  errorsOf,
  nameOf,
  type PlacedFault,
  suggestion,
  valueAt,
} from './errors.ts';
import { readYaml } from './yaml.ts';

/** The documents of the records, not yet checked, and what is wrong with the manifest around them. */
interface Unfolded {
  readonly records: readonly ConfigDocument[];
  readonly errors: readonly ConfigurationError[];
}

/** A manifest becomes the records in its annotation; any other document stays as it is. */
export function unfoldManifest(document: ConfigDocument, gatewayDomain: string): Unfolded {
  const isManifest = valueAt(document.value, ['kind']) === 'Service';
  return isManifest ? readManifest(document, `${gatewayDomain}/config`) : { records: [document], errors: [] };
}

function readManifest(document: ConfigDocument, key: string): Unfolded {
  const { value } = document;
  const name = valueAt(value, namePath);
  const record = typeof name === 'string' ? `Service ${name}` : 'Service';
  const annotation = valueAt(value, [...annotationsPath, key]);
  const errors = errorsOf(document, manifestFaults(value, key), record);
  if (typeof annotation !== 'string') return { records: [], errors };
  const inner = readYaml(annotation, document.placeWithin([...annotationsPath, key], record), (found) => found);
  return { records: inner.results, errors: [...errors, ...inner.errors] };
}

const namePath = ['metadata', 'name'];
const annotationsPath = ['metadata', 'annotations'];

function manifestFaults(manifest: unknown, key: string): readonly PlacedFault[] {
  const name = valueAt(manifest, namePath);
  const faults: PlacedFault[] = [];
  if (valueAt(manifest, ['apiVersion']) !== 'v1') {
    faults.push({ path: ['apiVersion'], message: 'a Service has apiVersion v1', remedy: 'Write apiVersion: v1' });
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
    const message = `metadata.annotations must be a map, not ${nameOf(annotations)}`;
    return [{ path: annotationsPath, message, remedy: `Indent ${key} below it, or remove it.` }];
  }
  const value = valueAt(annotations, [key]);
  if (value === undefined) return mistypedKeys(annotations, key);
  if (typeof value === 'string') return [];
  const message = `the annotation ${key} must be a string, not ${nameOf(value)}`;
  return [{ path: [...annotationsPath, key], message, remedy: `Put a "|" behind the key: ${key}: |` }];
}

/** Ignores foreign annotations, but not one that is nearly our key: its records would be lost silently. */
function mistypedKeys(annotations: object, key: string): readonly PlacedFault[] {
  return Object.keys(annotations)
    .filter((other) => suggestion(other, [key]) !== undefined)
    .map((other) => ({
      path: [...annotationsPath, other],
      message: `the annotation ${other} is not read, did you mean ${key}?`,
      remedy: `Write ${key}, or set GATEWAY_DOMAIN to the part before the slash.`,
    }));
}
