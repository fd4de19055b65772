/** Keeps of an object of the API what records, addresses and the routes of the Gateway API are read from. */
import { isDeepStrictEqual } from 'node:util';
import { ambassadorDomain, annotationKey, type ClusterObject, excessOf, isGuardingIngress } from '#config';
import { type Fields, isMap } from '#foundation';
import { type EndpointSliceObject, type ServiceObject, serviceLabel } from '../addresses.ts';
import type { Resource } from './resources.ts';

/** A part that has not changed is the same object as before. */
export interface KeptObject {
  readonly uid: string;
  /** Undefined for an object without records. */
  readonly record: ClusterObject | undefined;
  /** A Service or an EndpointSlice. */
  readonly address: AddressObject | undefined;
  /** A kind of the Gateway API, or what such an object may refer to. */
  readonly gatewayApi: ClusterObject | undefined;
}

export const keptParts = ['record', 'address', 'gatewayApi'] as const;

/** An object of the API as plain data, with the fields that addresses are made from. */
export type AddressObject = AddressService | AddressSlice;

type AddressService = ServiceObject & { readonly kind: 'Service' };
type AddressSlice = EndpointSliceObject & { readonly kind: 'EndpointSlice' };

export function isService(object: AddressObject): object is AddressService {
  return object.kind === 'Service';
}

export function isSlice(object: AddressObject): object is AddressSlice {
  return object.kind === 'EndpointSlice';
}

/** Undefined for what is no object of the API. */
export function keepObject(
  item: unknown,
  resource: Resource,
  gatewayDomain: string,
  before: KeptObject | undefined,
): { readonly key: string; readonly kept: KeptObject } | undefined {
  const metadata = isMap(item) ? item['metadata'] : undefined;
  if (!isMap(item) || !isMap(metadata)) return undefined;
  const { uid = '', name = '', namespace = '' } = metadata as Readonly<Record<string, string>>;
  const same = before?.uid === uid ? before : undefined;
  const record = unchanged(same?.record, recordOf(item, metadata, resource, gatewayDomain), significantPart);
  const address = unchanged(same?.address, addressOf(item, metadata, resource), (part) => part);
  const gatewayApi = unchanged(same?.gatewayApi, gatewayApiOf(item, metadata, resource), withoutStatus);
  return { key: `${namespace}/${name}`, kept: { uid, record, address, gatewayApi } };
}

export function keyOf(item: unknown): string | undefined {
  const metadata = isMap(item) ? item['metadata'] : undefined;
  return isMap(metadata) ? `${metadata['namespace'] ?? ''}/${metadata['name']}` : undefined;
}

function unchanged<T>(before: T | undefined, now: T | undefined, partOf: (value: T) => unknown): T | undefined {
  if (before === undefined || now === undefined) return now;
  const part = partOf(now);
  // The comparison is recursive, and would throw for what is nested thousands of levels deep.
  return excessOf(part) === undefined && isDeepStrictEqual(partOf(before), part) ? before : now;
}

/** Our own writes of a status must not look like a change. */
function significantPart({ value }: ClusterObject): unknown {
  const { spec, metadata } = value as Fields;
  return [spec, (metadata as Fields)['annotations']];
}

/** The generation of a spec is part of what a status says. */
function withoutStatus({ value }: ClusterObject): unknown {
  const { status: _, ...rest } = value as Fields;
  return rest;
}

function recordOf(
  item: Fields,
  metadata: Fields,
  resource: Resource,
  gatewayDomain: string,
): ClusterObject | undefined {
  const { use, hasStatus } = resource;
  const { uid, name, namespace, generation } = metadata;
  if (use === 'record') {
    const status = hasStatus && { generation };
    const value = { metadata: { name, namespace, uid, ...status }, spec: item['spec'] };
    return clusterObject(metadata, resource, { ...value, ...(hasStatus && { status: item['status'] }) });
  }
  if (use !== 'services' && use !== 'ingresses') return undefined;
  // Items of a list have no kind.
  if (use === 'ingresses' && isGuardingIngress({ ...item, kind: resource.kind })) {
    const { annotations } = metadata;
    return clusterObject(metadata, resource, { metadata: { name, namespace, uid, annotations }, spec: item['spec'] });
  }
  const annotations = recordAnnotation(metadata['annotations'], gatewayDomain);
  if (annotations === undefined) return undefined;
  return clusterObject(metadata, resource, { metadata: { name, namespace, uid, annotations } });
}

function clusterObject(metadata: Fields, { apiVersion, kind }: Resource, value: Fields): ClusterObject {
  const { uid, name, namespace = '', creationTimestamp } = metadata;
  return {
    apiVersion,
    kind,
    namespace: String(namespace),
    name: String(name),
    uid: String(uid),
    createdAt: String(creationTimestamp),
    value: { apiVersion, kind, ...value },
  };
}

/** Of Ambassador's annotation where it is not read, only that it is there. */
function recordAnnotation(annotations: unknown, gatewayDomain: string): Fields | undefined {
  if (!isMap(annotations)) return undefined;
  const [own, ofAmbassador] = [annotationKey(gatewayDomain), annotationKey(ambassadorDomain)];
  if (annotations[own] !== undefined) return { [own]: annotations[own] };
  return annotations[ofAmbassador] === undefined ? undefined : { [ofAmbassador]: '' };
}

/** The API server has checked the types of the fields. */
function addressOf(item: Fields, metadata: Fields, { use }: Resource): AddressObject | undefined {
  const head = { namespace: String(metadata['namespace']), name: String(metadata['name']) };
  if (use === 'services') return { kind: 'Service', metadata: head, spec: serviceSpec(item) } as AddressService;
  if (use !== 'slices') return undefined;
  const service = isMap(metadata['labels']) ? metadata['labels'][serviceLabel] : undefined;
  const labels: Readonly<Record<string, string>> = service === undefined ? {} : { [serviceLabel]: String(service) };
  const { addressType, endpoints, ports } = item;
  const known = Array.isArray(endpoints) ? endpoints.filter(isMap).map(endpointOf) : [];
  return {
    kind: 'EndpointSlice',
    metadata: { ...head, labels },
    addressType,
    endpoints: known,
    ports,
  } as unknown as AddressSlice;
}

function endpointOf({ addresses, conditions }: Fields): Fields {
  return { addresses, conditions };
}

function serviceSpec(item: Fields): Fields {
  const { type, clusterIP, ipFamilies, externalName, ports } = isMap(item['spec']) ? item['spec'] : {};
  return { type, clusterIP, ipFamilies, externalName, ports };
}

function gatewayApiOf(item: Fields, metadata: Fields, resource: Resource): ClusterObject | undefined {
  if (!resource.isForGatewayApi) return undefined;
  return clusterObject(metadata, resource, gatewayApiValue(item, metadata, resource));
}

function gatewayApiValue(item: Fields, metadata: Fields, { use }: Resource): Fields {
  const { name, namespace, uid, generation, labels } = metadata;
  if (use === 'services') return { spec: serviceSpec(item) };
  if (use === 'namespaces') return { metadata: { name, labels } };
  if (use === 'secrets') return { type: item['type'], data: certificateOf(item['data']) };
  return { metadata: { name, namespace, uid, generation }, spec: item['spec'], status: item['status'] };
}

/** In Base64. A certificate with its chain has some thousand characters, and all Secrets are kept in memory. */
const certificateCharactersMax = 262_144;

/** A part that is too large counts as missing. */
function certificateOf(data: unknown): Fields {
  const parts = isMap(data) ? ['tls.crt', 'tls.key'].map((name) => [name, data[name]] as const) : [];
  return Object.fromEntries(
    parts.filter(([, part]) => typeof part === 'string' && part.length <= certificateCharactersMax),
  );
}
