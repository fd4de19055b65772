/** Service manifests: Kubernetes Services whose annotation holds records, and records that stand bare beside them. */
import type { ConfigurationError } from './configuration.ts';
import { errorsOf, nameOf, type PlacedFault } from './issues.ts';
import { suggestion } from './suggest.ts';
import { type PlacedDocument, readDocuments } from './yaml-documents.ts';

/** The records, still to be checked, and what is wrong with the manifest around them. */
interface Unfolded {
  readonly records: readonly PlacedDocument[];
  readonly errors: readonly ConfigurationError[];
}

/** A manifest becomes the records in its annotation, whose lines stay lines of the file; any other document stays as it is. */
export function unfoldManifest(document: PlacedDocument, gatewayDomain: string): Unfolded {
  const isManifest = field(document.value, 'kind') === 'Service';
  return isManifest ? readManifest(document, `${gatewayDomain}/config`) : { records: [document], errors: [] };
}

function readManifest(document: PlacedDocument, key: string): Unfolded {
  const { value } = document;
  const name = field(field(value, 'metadata'), 'name');
  const record = typeof name === 'string' ? `Service ${name}` : 'Service';
  const annotation = field(field(field(value, 'metadata'), 'annotations'), key);
  const errors = errorsOf(document, manifestFaults(value, key), record);
  if (typeof annotation !== 'string') return { records: [], errors };
  const inner = readDocuments(annotation, document.placeWithin([...annotationsPath, key], record));
  return { records: inner.documents, errors: [...errors, ...inner.errors] };
}

const annotationsPath = ['metadata', 'annotations'];

function manifestFaults(manifest: unknown, key: string): readonly PlacedFault[] {
  const metadata = field(manifest, 'metadata');
  const name = field(metadata, 'name');
  const faults: PlacedFault[] = [];
  if (field(manifest, 'apiVersion') !== 'v1') {
    faults.push({
      path: ['apiVersion'],
      message: 'a Service has apiVersion v1',
      remedy: 'Write apiVersion: v1',
    });
  }
  if (typeof name !== 'string' || name === '') {
    const path = ['metadata', 'name'];
    faults.push({
      path,
      message: 'metadata.name is missing',
      remedy: 'Name the service: metadata: { name: hotel }',
    });
  }
  return [...faults, ...annotationFaults(field(metadata, 'annotations'), key)];
}

function annotationFaults(annotations: unknown, key: string): readonly PlacedFault[] {
  if (annotations === undefined) return [];
  if (typeof annotations !== 'object' || annotations === null) {
    const message = `metadata.annotations must be a map, not ${nameOf(annotations)}`;
    return [
      {
        path: annotationsPath,
        message,
        remedy: `Indent ${key} below it, or remove it.`,
      },
    ];
  }
  const value = field(annotations, key);
  if (value === undefined) return mistypedKeys(annotations, key);
  if (typeof value === 'string') return [];
  const message = `the annotation ${key} must be a string, not ${nameOf(value)}`;
  return [
    {
      path: [...annotationsPath, key],
      message,
      remedy: `Put a "|" behind the key: ${key}: |`,
    },
  ];
}

/** Foreign annotations are none of our business, but one that nearly has our key would be lost without a word. */
function mistypedKeys(annotations: object, key: string): readonly PlacedFault[] {
  return Object.keys(annotations)
    .filter((other) => suggestion(other, [key]) !== undefined)
    .map((other) => ({
      path: [...annotationsPath, other],
      message: `the annotation ${other} is not read, did you mean ${key}?`,
      remedy: `Write ${key}, or set GATEWAY_DOMAIN to what stands before the slash.`,
    }));
}

function field(value: unknown, key: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, key) : undefined;
}
