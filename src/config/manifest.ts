/** Extracts the records from Kubernetes manifests: from the annotation of an object, and from the items of a List. */
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

/** Returns the records in a List or in the annotation of an object. Returns any other document unchanged. */
export function unfoldManifest(document: ConfigDocument, gatewayDomain: string): Unfolded {
  const kind = valueAt(document.value, ['kind']);
  const items = valueAt(document.value, ['items']);
  if (typeof kind === 'string' && kind.endsWith('List') && items !== undefined)
    return unfoldList(document, kind, items, gatewayDomain);
  const key = annotationKey(gatewayDomain);
  if (kind === 'Service') return readAnnotation(document, key, serviceFaults(document.value, key));
  const annotated = readAnnotation(document, key);
  return { records: [document, ...annotated.records], errors: annotated.errors };
}

/** The annotation of a Service that has records. */
export function annotationKey(gatewayDomain: string): string {
  return `${gatewayDomain}/config`;
}

function unfoldList(document: ConfigDocument, kind: string, items: unknown, gatewayDomain: string): Unfolded {
  // The Kubernetes API writes null for an empty list.
  if (items === null) return { records: [], errors: [] };
  if (!Array.isArray(items)) {
    const message = `items must be a list, not ${typeName(items)}`;
    return { records: [], errors: errorsOf(document, [{ path: ['items'], message, remedy: listRemedy }], kind) };
  }
  const parts = items.map((item, index) => unfoldManifest(itemOf(document, kind, item, index), gatewayDomain));
  return { records: parts.flatMap(({ records }) => records), errors: parts.flatMap(({ errors }) => errors) };
}

const listRemedy = 'Write each resource as an item of the list, or as a document of its own.';

/**
 * Returns an item of a List, which is what `kubectl get -o yaml` prints for several resources. The items of a list of one
 * kind, such as a ServiceList of the Kubernetes API, have no kind themselves.
 */
function itemOf(document: ConfigDocument, kind: string, item: unknown, index: number): ConfigDocument {
  const { value: list, file, lineAt, placeWithin } = document;
  const within = (path: readonly PropertyKey[]) => ['items', index, ...path];
  const isTyped = kind === 'List' || typeName(item) !== 'a map';
  const types = { apiVersion: valueAt(list, ['apiVersion']), kind: kind.replace(/List$/, '') };
  return {
    value: isTyped ? item : { ...types, ...Object(item) },
    file,
    lineAt: (path) => lineAt(within(path)),
    placeWithin: (path, record) => placeWithin(within(path), record),
  };
}

/** Reads the annotation of any object: Ambassador reads those of Services and Ingresses. */
function readAnnotation(document: ConfigDocument, key: string, faults: readonly PlacedFault[] = []): Unfolded {
  const { value } = document;
  const name = valueAt(value, namePath);
  const record = [valueAt(value, ['kind']), name].filter((part) => typeof part === 'string').join(' ');
  const annotation = valueAt(value, [...annotationsPath, key]);
  const errors = errorsOf(document, [...faults, ...annotationFaults(valueAt(value, annotationsPath), key)], record);
  if (typeof annotation !== 'string') return { records: [], errors };
  const namespace = valueAt(value, ['metadata', 'namespace']);
  const place = document.placeWithin([...annotationsPath, key], record);
  const inner = readYaml(annotation, place, (found) => ({ ...found, namespace }));
  return { records: inner.results, errors: [...errors, ...inner.errors] };
}

const namePath = ['metadata', 'name'];
const annotationsPath = ['metadata', 'annotations'];

function serviceFaults(manifest: unknown, key: string): readonly PlacedFault[] {
  const name = valueAt(manifest, namePath);
  const annotations = valueAt(manifest, annotationsPath);
  const faults: PlacedFault[] = [];
  if (valueAt(manifest, ['apiVersion']) !== 'v1') {
    faults.push({ path: ['apiVersion'], message: 'a Service must have apiVersion v1', remedy: 'Write apiVersion: v1' });
  }
  if (typeof name !== 'string' || name === '') {
    const remedy = 'Name the service: metadata: { name: orders }';
    faults.push({ path: namePath, message: 'metadata.name is missing', remedy });
  }
  if (annotations !== undefined && (typeof annotations !== 'object' || annotations === null)) {
    const message = `metadata.annotations must be a map, not ${typeName(annotations)}`;
    faults.push({ path: annotationsPath, message, remedy: `Indent ${key} below it, or remove it.` });
  }
  return faults;
}

function annotationFaults(annotations: unknown, key: string): readonly PlacedFault[] {
  if (typeof annotations !== 'object' || annotations === null) return [];
  const value = valueAt(annotations, [key]);
  if (value === undefined) return [...mistypedKeys(annotations, key), ...unreadRecords(annotations, key)];
  if (typeof value === 'string') return unreadRecords(annotations, key);
  const message = `the annotation ${key} must be a string, not ${typeName(value)}`;
  return [{ path: [...annotationsPath, key], message, remedy: `Put a "|" after the key: ${key}: |` }];
}

/** Rejects the records of another gateway domain: they may contain an AuthService. */
function unreadRecords(annotations: object, key: string): readonly PlacedFault[] {
  return Object.entries(annotations).flatMap(([other, value]) => {
    const [, domain] = /^([^/]+)\/config$/.exec(other) ?? [];
    const holdsRecords = typeof value === 'string' && ['apiVersion', 'kind'].every((name) => hasKey(value, name));
    if (domain === undefined || isSimilar(other, key) || !holdsRecords) return [];
    return {
      path: [...annotationsPath, other],
      message: `the annotation ${other} contains records, which are not read`,
      remedy: `Set GATEWAY_DOMAIN=${domain} to read them, or remove the annotation.`,
    };
  });
}

/** Searches the text in both notations, block and flow, because the text may be invalid. */
function hasKey(text: string, name: string): boolean {
  return new RegExp(`(?:^|[\\s{,])["']?${name}["']?\\s*:`, 'm').test(text);
}

/** Ignores other annotations, but reports keys similar to ours, whose records would otherwise be ignored silently. */
function mistypedKeys(annotations: object, key: string): readonly PlacedFault[] {
  return Object.keys(annotations)
    .filter((other) => isSimilar(other, key))
    .map((other) => ({
      path: [...annotationsPath, other],
      message: `the annotation ${other} is not read, did you mean ${key}?`,
      remedy: `Write ${key}, or set GATEWAY_DOMAIN to the part before the slash.`,
    }));
}

function isSimilar(other: string, key: string): boolean {
  return suggestion(other, [key]) !== undefined;
}
