/** Ambassador's own records: as annotations held them, and as resources of their own kinds, turned into ours. */
import type { FieldReader, FieldReaders, Fields, Notice } from './ambassador-fields.ts';
import { kindOf, nativeVersion, remedyForKind } from './ambassador-kinds.ts';
import type { ConfigurationError } from './configuration.ts';
import { isAmbassadors } from './fields.ts';
import { errorsOf, type PlacedFault } from './issues.ts';
import { callFields } from './redirect-rules.ts';
import type { PlacedDocument } from './yaml-documents.ts';

/** With this GATEWAY_DOMAIN a directory may hold Ambassador's files as they are. */
const ambassadorDomain = 'getambassador.io';

interface Translated {
  readonly records: readonly PlacedDocument[];
  readonly notices: readonly ConfigurationError[];
}

/** For one load of a configuration: records of ours stay as they are, what is of another kind is left out with a notice. */
export function createTranslator(gatewayDomain: string): (documents: readonly PlacedDocument[]) => Translated {
  if (gatewayDomain !== ambassadorDomain) return (documents) => ({ records: documents, notices: [] });
  let isTold = false;

  function differencesFrom(document: PlacedDocument, { records: [record] }: Translated) {
    if (isTold || record === undefined || record === document) return [];
    isTold = true;
    return noticesOf(document, [{ path: [], ...differences }]);
  }

  return (documents) => {
    const parts = documents.map((document) => ({ document, ...translate(document) }));
    return {
      records: parts.flatMap(({ records }) => records),
      notices: parts.flatMap((part) => [...differencesFrom(part.document, part), ...part.notices]),
    };
  };
}

const differences: Notice = {
  message:
    'is read as Ambassador reads it, but for three things: a prefix matches whole path segments, a service sees its own Host unless host_rewrite says otherwise, and a label whose header is missing is left out alone',
  remedy: 'README says more of each. This notice stands once for all records.',
};

function translate(document: PlacedDocument): Translated {
  const { apiVersion, kind, ...record } = asMap(document.value) ?? {};
  if (typeof apiVersion !== 'string' || typeof kind !== 'string') return untouched(document);
  const known = kindOf(kind);
  if (!isAmbassadors(apiVersion)) {
    return known !== undefined || apiVersion.startsWith('gateway/')
      ? untouched(document)
      : skipped(document, kind, ofNoRoute);
  }
  if (known === undefined) {
    const remedy = remedyForKind(kind);
    return remedy === undefined ? untouched(document) : skipped(document, kind, remedy);
  }
  const { fields, placeOf } = fieldsOf(record);
  const ids: readonly unknown[] = [fields['ambassador_id'] ?? 'default'].flat();
  if (!ids.includes('default'))
    return skipped(document, `${kind} of ambassador_id ${ids.join(', ')}`, ofAnotherGateway);
  return translated(document, { ...known.defaults, ...fields }, { kind, placeOf, readers: known.readers });
}

/** Of Deployments and the like, which often stand in the same file. */
const ofNoRoute = 'Nothing need be done: it says nothing of routes.';
const ofAnotherGateway = 'It is for another gateway; remove ambassador_id where it is for this one.';

function untouched(document: PlacedDocument): Translated {
  return { records: [document], notices: [] };
}

function skipped(document: PlacedDocument, what: string, remedy: string): Translated {
  return {
    records: [],
    notices: noticesOf(document, [{ path: ['kind'], message: `this ${what} is not read`, remedy }]),
  };
}

interface Placed {
  readonly fields: Fields;
  /** Where a field of the record stands in the document. */
  readonly placeOf: (name: string) => readonly string[];
}

interface Source extends Pick<Placed, 'placeOf'> {
  readonly kind: string;
  readonly readers: FieldReaders;
}

/** A resource has its fields under `spec` and its name under `metadata`; in an annotation they stand side by side. */
function fieldsOf(record: Fields): Placed {
  const { apiVersion, kind, generation, metadata, spec, status, ...flat } = record;
  const { name, namespace } = asMap(metadata) ?? {};
  if (spec === undefined && name === undefined) return { fields: flat, placeOf: (field) => [field] };
  const isElsewhere = typeof name === 'string' && typeof namespace === 'string' && namespace !== 'default';
  return {
    fields: { name: isElsewhere ? `${name}.${namespace}` : name, ...asMap(spec) },
    placeOf: (field) => (field === 'name' ? ['metadata', 'name'] : ['spec', field]),
  };
}

function translated(document: PlacedDocument, given: Fields, { kind, readers, placeOf }: Source): Translated {
  const fields: Record<string, unknown> = { apiVersion: nativeVersion(asMap(document.value)?.['apiVersion']), kind };
  const origins = new Map<PropertyKey, string>();
  const notices: PlacedFault[] = [];
  for (const [name, value] of Object.entries(given)) {
    // There, an empty value is the same as none.
    if (value === null) continue;
    const reading = readerOf(name, given, readers)(value, given);
    Object.assign(fields, reading.fields);
    for (const field of Object.keys(reading.fields)) origins.set(field, name);
    if (reading.notice === undefined) continue;
    const { message, remedy } = reading.notice;
    notices.push({ path: placeOf(name), message: `${name} ${message}`, remedy });
  }
  const lineAt = (path: readonly PropertyKey[]) => document.lineAt(placed(path, origins, placeOf));
  return { records: [{ ...document, value: fields, lineAt }], notices: noticesOf(document, notices) };
}

function readerOf(name: string, all: Fields, readers: FieldReaders): FieldReader {
  if (isMootOfRedirect(name, all)) return moot;
  return (Object.hasOwn(readers, name) ? readers[name] : undefined) ?? ((value) => ({ fields: { [name]: value } }));
}

const moot: FieldReader = () => ({
  fields: {},
  notice: { message: 'says nothing of a redirect', remedy: 'Remove it.' },
});

function isMootOfRedirect(name: string, { host_redirect: redirects }: Fields): boolean {
  return redirects === true && callFields.some((field) => field === name);
}

function placed(
  [first, ...rest]: readonly PropertyKey[],
  origins: ReadonlyMap<PropertyKey, string>,
  placeOf: (name: string) => readonly string[],
): readonly PropertyKey[] {
  if (first === undefined) return [];
  return [
    ...(first === 'kind' || first === 'apiVersion' ? [first] : placeOf(origins.get(first) ?? String(first))),
    ...rest,
  ];
}

function noticesOf(document: PlacedDocument, notices: readonly PlacedFault[]): readonly ConfigurationError[] {
  return errorsOf(document, notices, nameOf(document.value));
}

/** `Mapping hotel`, as errors name it. */
function nameOf(value: unknown): string | undefined {
  const record = asMap(value);
  if (record === undefined) return undefined;
  return [record['kind'], fieldsOf(record).fields['name']].filter((part) => typeof part === 'string').join(' ');
}

function asMap(value: unknown): Fields | undefined {
  const isMap = typeof value === 'object' && value !== null && !Array.isArray(value);
  return isMap ? Object.fromEntries(Object.entries(value)) : undefined;
}
