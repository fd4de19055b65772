/** Keeps of an object of the API what records and addresses are read from. */
import { isDeepStrictEqual } from 'node:util';
import { ambassadorDomain, annotationKey, type ClusterObject, excessOf } from '#config';
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
}

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
  return { key: `${namespace}/${name}`, kept: { uid, record, address } };
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

function recordOf(
  item: Fields,
  metadata: Fields,
  { apiVersion, kind, use, hasStatus }: Resource,
  gatewayDomain: string,
): ClusterObject | undefined {
  const { uid, name, namespace, generation, creationTimestamp } = metadata;
  const head = {
    namespace: String(namespace),
    name: String(name),
    uid: String(uid),
    createdAt: String(creationTimestamp),
  };
  if (use === 'slices') return undefined;
  if (use === 'record') {
    const status = hasStatus && { generation };
    const value = { apiVersion, kind, metadata: { name, namespace, uid, ...status }, spec: item['spec'] };
    return { apiVersion, kind, ...head, value: { ...value, ...(hasStatus && { status: item['status'] }) } };
  }
  const annotations = recordAnnotation(metadata['annotations'], gatewayDomain);
  if (annotations === undefined) return undefined;
  return { apiVersion, kind, ...head, value: { apiVersion, kind, metadata: { name, namespace, uid, annotations } } };
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
  if (use === 'services') {
    const { type, clusterIP, ipFamilies, externalName, ports } = isMap(item['spec']) ? item['spec'] : {};
    const spec = { type, clusterIP, ipFamilies, externalName, ports };
    return { kind: 'Service', metadata: head, spec } as AddressService;
  }
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
