/** Reads the records of an object of a cluster, with what it may guard in case that it is refused. */
import { type Fields, isMap, messageOf } from '#foundation';
import type { AddressRecord } from '../ambassador/addresses.ts';
import { mayProtect } from '../ambassador/other-kinds.ts';
import { differencesNotice, translateRecords } from '../ambassador/translate.ts';
import {
  type ConfigDocument,
  type ConfigurationError,
  errorsOf,
  fileError,
  type PlacedFault,
  valueAt,
} from '../errors.ts';
import { isPolicy, readPolicy } from '../gateway-api/route-policy.ts';
import { isRoute } from '../gateway-api/specs.ts';
import { annotationKey } from '../manifest.ts';
import { quote } from '../quote.ts';
import { isAmbassadorVersion } from '../records/kind.ts';
import { type GatewayRecord, readers, readRecord } from '../records/record.ts';
import { tlsFileNames } from '../tls/upstream-tls.ts';
import { readYaml } from '../yaml.ts';
import { charactersMax, documentsMax, excessOf, lengthCost, lengthOf, patternCost, patternExcess } from './bounds.ts';
import { type Guards, joinedGuards, noGuards } from './guards.ts';
import { type ClusterObject, nameOfObject, unusableError } from './object.ts';
import { isOwnKind } from './own-kinds.ts';
import { readRoute } from './read-route.ts';
import { leadsToThisMachine, nameIn, namesOwnModule, referenceIn } from './references.ts';
import { refusedMapping, refusedService } from './refused-mapping.ts';
import type { RoomOptions } from './room.ts';

/** The contents of one object. Nothing in it depends on other objects. */
export interface ObjectPart {
  readonly object: ClusterObject;
  readonly records: readonly GatewayRecord[];
  readonly addresses: readonly AddressRecord[];
  /** How many Mappings it has, used or not. Regular expressions and long texts count as more. */
  readonly mappingCount: number;
  /** Whether it was left unread, because its namespace has too many Mappings. */
  readonly isBeyond: boolean;
  /** If there is one, none of its records is used. */
  readonly errors: readonly ConfigurationError[];
  readonly notices: readonly ConfigurationError[];
  /** A notice about how frontdesk reads Ambassador's records, if the object has any. It appears once for all objects. */
  readonly differences: readonly ConfigurationError[];
  /** What would be open if the object were simply left out. */
  readonly guards: () => Guards;
}

export interface ObjectOptions extends RoomOptions {
  readonly gatewayDomain: string;
}

/** An object that makes the reading itself fail, which is a bug, is refused like any other. */
export function readObject(object: ClusterObject, options: ObjectOptions): ObjectPart {
  try {
    return readWhole(object, options);
  } catch (cause) {
    return unreadPart(object, unusableError(object, `cannot be read: ${messageOf(cause)}`), options);
  }
}

function readWhole(object: ClusterObject, options: ObjectOptions): ObjectPart {
  const part = readPart(object, options);
  const records = options.trusted.includes(object.namespace) ? part.records : part.records.map(asUntrusted);
  return { ...part, records, errors: firstOf(part.errors, nameOfObject(object)) };
}

function asUntrusted(record: GatewayRecord): GatewayRecord {
  return record.kind === 'Mapping' ? { ...record, isUntrusted: true } : record;
}

function readPart(object: ClusterObject, options: ObjectOptions): ObjectPart {
  if (isRoute(object)) return { object, ...nothing, ...readRoute(object) };
  if (isPolicy(object)) return { object, ...nothing, errors: readPolicy(object).errors };
  const contents = contentsOf(object, options);
  const { read } = contents;
  const errors = [...contents.errors, ...read.flatMap((one) => one.errors)];
  const [differences = []] = read.map((one) => one.differences).filter(({ length }) => length > 0);
  // A tree of YAML takes far more memory than its records, so that of a valid object is read again in the rare case.
  let guards = errors.length === 0 ? undefined : guardsIn(contents, object, options);
  return {
    object,
    isBeyond: false,
    records: read.flatMap(({ records }) => records),
    addresses: read.flatMap(({ addresses }) => addresses),
    mappingCount: read.reduce((count, one) => count + mappingCountOf(one), 0),
    errors,
    notices: read.flatMap(({ notices }) => notices),
    differences,
    guards() {
      guards ??= guardsIn(contentsOf(object, options), object, options);
      return guards;
    },
  };
}

/** What an object has that is not there to have records of its own. */
const nothing: Omit<ObjectPart, 'object'> = {
  records: [],
  addresses: [],
  mappingCount: 0,
  isBeyond: false,
  errors: [],
  notices: [],
  differences: [],
  guards: () => noGuards,
};

/** An object whose namespace has no room for it. What it matches counts as unknown: no Mapping is made of it. */
export function partBeyond(object: ClusterObject, mappingCount: number, options: ObjectOptions): ObjectPart {
  const { namespace } = object;
  const counted = `${mappingCount} Mapping${mappingCount === 1 ? '' : 's'}`;
  const message = `this object counts as ${counted}, and together with older objects the namespace ${namespace} would have more than the ${options.mappingsMax} of KUBERNETES_MAPPINGS_MAX`;
  const remedy = `Remove Mappings or hostnames here or in older objects of ${namespace}, where each regular expression counts as five Mappings more, and each 4,000 characters of a Mapping as one, or ask the operators of frontdesk for a higher number.`;
  const error = fileError(nameOfObject(object), message, remedy);
  return { ...unreadPart(object, error, options), mappingCount, isBeyond: true };
}

function unreadPart(object: ClusterObject, error: ConfigurationError, { gatewayDomain }: ObjectOptions): ObjectPart {
  const guards = unreadGuards(object, gatewayDomain);
  return { ...nothing, object, errors: [error], guards: () => guards };
}

/** The errors of an object that are kept. */
const errorsMax = 100;

function firstOf(errors: readonly ConfigurationError[], file: string): readonly ConfigurationError[] {
  if (errors.length <= errorsMax) return errors;
  const message = `there are ${errors.length - errorsMax} more errors`;
  return [...errors.slice(0, errorsMax), fileError(file, message, 'Correct the errors above first.')];
}

/** Whether an object has records, so that something is to be said about it. */
export function hasRecords({ kind, value }: ClusterObject, gatewayDomain: string): boolean {
  return !isAnnotated(kind) || typeof annotationOf(value, gatewayDomain) === 'string';
}

/** A kind of Kubernetes itself, which has records in an annotation. */
function isAnnotated(kind: string): boolean {
  return kind === 'Service' || kind === 'Ingress';
}

function annotationOf(value: unknown, gatewayDomain: string): unknown {
  return valueAt(value, ['metadata', 'annotations', annotationKey(gatewayDomain)]);
}

interface Documents {
  readonly documents: readonly ConfigDocument[];
  readonly errors: readonly ConfigurationError[];
}

function documentsOf(object: ClusterObject, gatewayDomain: string): Documents {
  const { apiVersion, kind, name, namespace, value } = object;
  const file = nameOfObject(object);
  if (isAnnotated(kind)) {
    const text = String(annotationOf(value, gatewayDomain) ?? '');
    if (text.length > charactersMax)
      return { documents: [], errors: [tooMuch(file, text.length, charactersMax, 'characters')] };
    const { results, errors } = readYaml(text, { file, lineOf: (line) => line }, (found) => ({ ...found, namespace }));
    if (results.length > documentsMax)
      return { documents: [], errors: [tooMuch(file, results.length, documentsMax, 'documents')] };
    return { documents: results, errors };
  }
  const record = isOwnKind(object)
    ? { ...Object(valueAt(value, ['spec'])), apiVersion: 'gateway/v1', kind, name }
    : { ...Object(value), kind, apiVersion, metadata: { name, namespace } };
  const document = { value: record, file, lineAt: () => 0, placeWithin: () => ({ file, lineOf: () => 0 }) };
  return { documents: [document], errors: [] };
}

function tooMuch(file: string, found: number, max: number, what: string): ConfigurationError {
  const message = `the annotation has ${found} ${what}, and at most ${max} are read`;
  return fileError(file, message, 'Split it over several Services.');
}

interface Contents {
  readonly read: readonly ReadDocument[];
  /** Those of what is no document. */
  readonly errors: readonly ConfigurationError[];
}

function contentsOf(object: ClusterObject, options: ObjectOptions): Contents {
  const { documents, errors } = documentsOf(object, options.gatewayDomain);
  const values = documents.map(({ value }) => value);
  const excess = excessOf(values) ?? patternExcess(values);
  if (excess !== undefined)
    return {
      read: [],
      errors: [fileError(nameOfObject(object), `this object ${excess}`, 'Split it, or remove some.')],
    };
  return { read: documents.map((document) => readDocument(document, object, options)), errors };
}

interface ReadDocument extends Omit<ObjectPart, 'object' | 'guards' | 'mappingCount' | 'isBeyond'> {
  /** As it is written. */
  readonly original: ConfigDocument;
  /** The same as frontdesk's own records. */
  readonly translated: readonly ConfigDocument[];
}

function readDocument(original: ConfigDocument, object: ClusterObject, options: ObjectOptions): ReadDocument {
  const isTrusted = options.trusted.includes(object.namespace);
  const found = translateRecords([original], options.gatewayDomain);
  const isForeign = isAmbassadorVersion(String(valueAt(original.value, ['apiVersion'])));
  const translated = found.records.map((document) => placed(document, object, { isForeign, isTrusted, ...options }));
  const results = translated.map(readRecord);
  const untrusted = isTrusted || found.addresses.length === 0 ? [] : [untrustedFault('Module', options)];
  const elsewhere = isForeign ? namespaceFaults(original.value, object) : [];
  return {
    original,
    translated,
    records: results.flatMap((result) => (result.ok ? [result.record] : [])),
    addresses: untrusted.length === 0 ? found.addresses : [],
    errors: [
      ...found.errors,
      ...errorsOf(original, [...untrusted, ...elsewhere], undefined),
      ...results.flatMap((result) => (result.ok ? [] : result.errors)),
    ],
    notices: found.notices,
    differences: found.first === undefined ? [] : differencesNotice(found.first),
  };
}

/** The name of a record of Ambassador has its namespace, and must not be one of another namespace. */
function namespaceFaults(value: unknown, { namespace }: ClusterObject): readonly PlacedFault[] {
  const paths = [['namespace'], ['metadata', 'namespace']];
  return paths.flatMap((path) => {
    const written = valueAt(value, path) ?? namespace;
    if (written === namespace) return [];
    const message = `namespace is ${quote(String(written))}, but this object is in the namespace ${namespace}`;
    return [{ path, message, remedy: 'Remove it, or move the record to an object of that namespace.' }];
  });
}

interface Placing extends ObjectOptions {
  /** Whether the record was one of Ambassador's, whose name has its namespace already unless that is `default`. */
  readonly isForeign: boolean;
  readonly isTrusted: boolean;
}

/** Whether a kind counts only from a trusted namespace, as all do but one: a new kind is closed until it is opened here. */
function decidesForAll(kind: unknown): boolean {
  return kind !== 'Mapping' && readers.has(String(kind));
}

/** The name of the field of a kind that says which service is called, if it has one. */
function serviceFieldOf(kind: unknown): string | undefined {
  const fields = Object.values(readers.get(String(kind))?.fields ?? {});
  return fields.find(({ type }) => type === 'service reference')?.name;
}

/** Returns a record with the names that it has outside of its namespace, and with the faults of its place. */
function placed(document: ConfigDocument, { namespace }: ClusterObject, options: Placing): ConfigDocument {
  const { value } = document;
  if (!isMap(value)) return document;
  const { kind, name } = value;
  const field = serviceFieldOf(kind);
  const service = field === undefined ? undefined : value[field];
  const hasNamespace = options.isForeign && namespace !== 'default';
  const named = {
    ...value,
    ...(typeof name === 'string' && !hasNamespace && { name: nameIn(namespace, name) }),
    ...(field !== undefined && typeof service === 'string' && { [field]: referenceIn(namespace, service) }),
  };
  const faults = options.isTrusted ? [] : [...placeFaults(named, field, options), ...moduleFaults(value)];
  return { ...document, value: named, faults: [...(document.faults ?? []), ...faults] };
}

function placeFaults(
  value: Readonly<Record<string, unknown>>,
  field: string | undefined,
  options: ObjectOptions,
): readonly PlacedFault[] {
  const faults: PlacedFault[] = [];
  const kind = String(value['kind']);
  if (decidesForAll(kind)) faults.push(untrustedFault(kind, options));
  const service = field === undefined ? undefined : value[field];
  if (field !== undefined && typeof service === 'string' && leadsToThisMachine(service)) {
    const message = `${field} ${quote(service)} is the machine of frontdesk, which only a trusted namespace may name`;
    faults.push({ path: [field], message, remedy: 'Name a Service of the cluster.' });
  }
  const files = isMap(value['tls']) ? Object.keys(value['tls']).filter((name) => tlsFileNames.includes(name)) : [];
  if (files.length > 0) {
    const message = `tls names files of frontdesk (${files.join(', ')}), which only a trusted namespace may use`;
    faults.push({ path: ['tls'], message, remedy: `Remove them, or ${trustIt}` });
  }
  return faults;
}

/** The ports of the modules do what they are asked: the limiter counts for any client. Kinds that need them are trusted. */
function moduleFaults({ kind, service }: Fields): readonly PlacedFault[] {
  if (kind !== 'Mapping' || typeof service !== 'string' || !namesOwnModule(service)) return [];
  const message = `service ${quote(service)} is a module of frontdesk, which only a trusted namespace may name`;
  return [{ path: ['service'], message, remedy: 'Name a Service of the cluster.' }];
}

function untrustedFault(kind: string, { trusted }: ObjectOptions): PlacedFault {
  return {
    path: ['kind'],
    message: `${kind} does not count from this namespace, because it would decide for all of them`,
    remedy: `Create it in the namespace ${trusted[0]}, or ${trustIt}`,
  };
}

const trustIt = 'add this namespace to KUBERNETES_TRUSTED_NAMESPACES.';

/** As far as can be seen before it is read: a document that is no valid Mapping counts, too. */
function mappingCountOf({ original, translated }: ReadDocument): number {
  const documents = translated.length === 0 ? [original] : translated;
  const mappings = documents.filter(({ value }) => valueAt(value, ['kind']) === 'Mapping');
  return mappings.reduce((count, { value }) => count + 1 + patternCost(value) + lengthCost(lengthOf(value)), 0);
}

function guardsIn({ read, errors }: Contents, object: ClusterObject, { gatewayDomain }: ObjectOptions): Guards {
  const isSyntaxWrong = errors.length > 0;
  return joinedGuards([
    ...(isSyntaxWrong ? [unreadGuards(object, gatewayDomain)] : []),
    ...read.map((one) => guardsOf(one, object)),
  ]);
}

function guardsOf({ original, translated, errors }: ReadDocument, object: ClusterObject): Guards {
  const kind = valueAt(original.value, ['kind']);
  const isLost = translated.length === 0 && errors.length > 0;
  const isOther = isLost && typeof kind === 'string' && !readers.has(kind);
  const mappings = translated.map((document) => refusedMapping(document, object));
  const isUnknown = !isOther && !readers.has(String(kind)) && errors.length > 0;
  // Ambassador also has an AuthService in a Module.
  const documents = isLost ? [original] : translated;
  const ofKind = (wanted: string) => documents.filter(({ value }) => valueAt(value, ['kind']) === wanted);
  const authServices = ofKind('AuthService');
  const hasAuthService = authServices.length > 0;
  return {
    mappings: mappings.filter((one) => one !== undefined && one !== 'unknown'),
    hasUnknownMatch: isUnknown || mappings.includes('unknown') || (kind === 'Mapping' && isLost),
    mayAuthenticate: isUnknown || hasAuthService,
    hasAuthService,
    hasDefault: authServices.some(({ value }) => valueAt(value, ['default']) !== false),
    deniedDomains: ofKind('RateLimitService').flatMap(deniedDomain),
    mayGuardAll: isOther,
  };
}

/** The domain of a RateLimitService that rejects what it cannot count, as far as it can be read. Empty for another one. */
function deniedDomain(document: ConfigDocument): readonly (string | undefined)[] {
  const { value } = document;
  const head = { apiVersion: 'gateway/v1', kind: 'RateLimitService', name: 'refused', service: refusedService };
  const readOnly = (wanted: string) => {
    const readable = Object.entries(Object(value)).filter(([name]) => name === wanted);
    const result = readRecord({ ...document, value: { ...head, ...Object.fromEntries(readable) }, faults: [] });
    return result.ok && result.record.kind === 'RateLimitService' ? result.record : undefined;
  };
  const denies = readOnly('failure_mode_deny')?.failureModeDeny ?? true;
  return denies ? [readOnly('domain')?.domain] : [];
}

/** What an object may guard that cannot be read: by the words in its annotation, or by its kind. */
function unreadGuards({ kind, value }: ClusterObject, gatewayDomain: string): Guards {
  const text = isAnnotated(kind) ? String(annotationOf(value, gatewayDomain)) : `kind: ${kind}`;
  const hasAuthService = /kind["']?\s*:\s*["']?AuthService|name["']?\s*:\s*["']?authentication\b/.test(text);
  const kinds = [...text.matchAll(/kind["']?\s*:\s*["']?(\w+)/g)].map(([, name = '']) => name);
  const mayDeny = kind === 'RateLimitService' || text.includes('failure_mode_deny');
  return {
    ...noGuards,
    hasUnknownMatch: true,
    mayAuthenticate: true,
    hasAuthService,
    hasDefault: hasAuthService,
    deniedDomains: mayDeny ? [undefined] : [],
    mayGuardAll: kinds.some(mayProtect),
  };
}
