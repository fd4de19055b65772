/** The addresses of Services: those of their pods from EndpointSlices, or the cluster IP, updated change by change. */
import { isIP } from 'node:net';
import { isDeepStrictEqual } from 'node:util';
import { isHost, leadsToThisMachine } from '#config';
import { isOwnAddress } from '#foundation';

/** The fields of a Service that are read. The API server has checked them. */
export interface ServiceObject {
  readonly metadata: ObjectMetadata;
  readonly spec?: {
    readonly type?: string;
    readonly clusterIP?: string;
    readonly ipFamilies?: readonly string[] | null;
    readonly externalName?: string;
    readonly ports?: readonly ServicePort[] | null;
  };
}

/** The fields of an EndpointSlice of `discovery.k8s.io/v1` that are read. */
export interface EndpointSliceObject {
  readonly metadata: ObjectMetadata & { readonly labels?: Readonly<Record<string, string>> | null };
  /** `IPv4`, `IPv6` or `FQDN`. */
  readonly addressType: string;
  readonly endpoints?: readonly SliceEndpoint[] | null;
  readonly ports?: readonly SlicePort[] | null;
}

interface ObjectMetadata {
  readonly namespace: string;
  readonly name: string;
}

interface ServicePort {
  /** Absent if the Service has a single port. */
  readonly name?: string;
  readonly port: number;
  readonly protocol?: string;
  /** A number, or the name of a port of the pods. Absent for the number of `port`. */
  readonly targetPort?: number | string;
}

interface SliceEndpoint {
  readonly addresses: readonly string[];
  readonly conditions?: {
    readonly ready?: boolean | null;
    readonly serving?: boolean | null;
    readonly terminating?: boolean | null;
  } | null;
}

interface SlicePort {
  readonly name?: string | null;
  readonly port?: number | null;
  readonly protocol?: string | null;
}

/** The label by which a slice belongs to a Service. */
export const serviceLabel = 'kubernetes.io/service-name';

/** The addresses of a Service, as plain data. */
export interface ServiceAddresses {
  readonly namespace: string;
  readonly name: string;
  /** In the order of the Service. Ports for UDP and SCTP are left out. */
  readonly ports: readonly PortAddresses[];
  /** True for a Service without a cluster IP, whose pods may also be called at their own ports. */
  readonly isHeadless: boolean;
  /** The hosts of a Service that has any port: one with an external name, and a headless one that declares none. */
  readonly hosts: readonly string[] | undefined;
  /** Whether its namespace is not trusted, so that its addresses must not lead to this machine. */
  readonly isUntrusted: boolean;
  /** Why it has no address at any port: `has an external name that …`. Undefined if it may have one. */
  readonly fault: string | undefined;
}

export interface PortAddresses {
  /** Empty if the port has no name. */
  readonly name: string;
  readonly port: number;
  /** The `host:port` of each address, without duplicates, sorted. */
  readonly addresses: readonly string[];
}

/** A Service whose addresses have changed. */
export interface ChangedService {
  readonly namespace: string;
  readonly name: string;
  /** Undefined if the Service does not exist any more. */
  readonly addresses: ServiceAddresses | undefined;
}

/** What a list or a burst of events says about one kind of object. */
export interface ObjectChanges<T> {
  /** New objects and changed ones. */
  readonly present: readonly T[];
  /** Deleted objects, except for those that are present again. @default none */
  readonly gone?: readonly { readonly metadata: ObjectMetadata }[];
  /** True if `present` lists all objects of the kind, so that the others do not exist any more. @default false */
  readonly isWhole?: boolean;
}

/** The Services and EndpointSlices that have changed, or all of them. */
export interface AddressChanges {
  readonly services?: ObjectChanges<ServiceObject>;
  readonly slices?: ObjectChanges<EndpointSliceObject>;
}

export interface AddressStore {
  /** Returns the Services whose addresses have changed. Takes time only for those of the objects. */
  readonly apply: (objects: AddressChanges) => readonly ChangedService[];
}

/** The pods of a Service (`endpoints`), or its cluster IP (`service`), or its name in DNS if it has none. */
type Source = 'endpoints' | 'service';

export function createAddressStore(
  source: Source = 'endpoints',
  isTrusted: (namespace: string) => boolean = () => false,
): AddressStore {
  const services = new Map<string, ServiceObject>();
  const slices = new Map<string, Slice>();
  const slicesOf = new Map<string, Set<Slice>>();
  const known = new Map<string, ServiceAddresses>();

  function setSlice(key: string, slice: Slice | undefined, touched: Set<string>): void {
    const before = slices.get(key);
    if (before !== undefined) {
      touched.add(before.service);
      const siblings = slicesOf.get(before.service);
      siblings?.delete(before);
      if (siblings?.size === 0) slicesOf.delete(before.service);
    }
    if (slice === undefined) {
      slices.delete(key);
      return;
    }
    touched.add(slice.service);
    slices.set(key, slice);
    const siblings = slicesOf.get(slice.service) ?? new Set();
    slicesOf.set(slice.service, siblings.add(slice));
  }

  function changeOf(key: string): readonly ChangedService[] {
    const service = services.get(key);
    const before = known.get(key);
    const [namespace = '', name = ''] = key.split('/');
    const found = service && addressesOf(service, [...(slicesOf.get(key) ?? [])], source);
    const now = found && { ...found, isUntrusted: !isTrusted(namespace) };
    if (isDeepStrictEqual(before, now)) return [];
    if (now === undefined) known.delete(key);
    else known.set(key, now);
    return [{ namespace, name, addresses: now }];
  }

  return Object.freeze({
    apply({ services: ofServices, slices: ofSlices }: AddressChanges) {
      const touched = new Set<string>();
      for (const [key, service] of changesOf(ofServices, services)) {
        if (service === undefined) services.delete(key);
        else services.set(key, service);
        touched.add(key);
      }
      for (const [key, object] of changesOf(ofSlices, slices))
        setSlice(key, object === undefined ? undefined : readSlice(object), touched);
      return [...touched].flatMap(changeOf);
    },
  });
}

/** Returns each changed object by its key, and undefined for one that is gone. */
function changesOf<T extends { readonly metadata: ObjectMetadata }>(
  changes: ObjectChanges<T> | undefined,
  known: ReadonlyMap<string, unknown>,
): ReadonlyMap<string, T | undefined> {
  if (changes === undefined) return new Map();
  const { present, gone = [], isWhole = false } = changes;
  return new Map<string, T | undefined>([
    ...(isWhole ? [...known.keys()] : gone.map(keyOf)).map((key) => [key, undefined] as const),
    ...present.map((object) => [keyOf(object), object] as const),
  ]);
}

function keyOf({ metadata }: { readonly metadata: ObjectMetadata }): string {
  return `${metadata.namespace}/${metadata.name}`;
}

/** What is kept of a slice. */
interface Slice {
  /** The key of its Service. */
  readonly service: string;
  readonly addressType: string;
  readonly ports: readonly SlicePort[];
  /** The hosts of endpoints that are ready, and of those that are shutting down but still serve. */
  readonly ready: readonly string[];
  readonly draining: readonly string[];
}

/** Undefined for a slice without a Service. */
function readSlice({ metadata, addressType, endpoints, ports }: EndpointSliceObject): Slice | undefined {
  const service = metadata.labels?.[serviceLabel];
  if (service === undefined) return undefined;
  const hostsOf = (isWanted: (endpoint: SliceEndpoint) => boolean) =>
    (endpoints ?? []).filter(isWanted).flatMap(({ addresses }) => addresses.flatMap((address) => hostOf(address)));
  return {
    service: `${metadata.namespace}/${service}`,
    addressType,
    ports: (ports ?? []).filter(isTcp),
    ready: hostsOf(isReady),
    draining: hostsOf((endpoint) => !isReady(endpoint) && isDraining(endpoint)),
  };
}

/** An unknown condition counts as true, and an unknown `terminating` as false, as the API says. */
function isReady({ conditions }: SliceEndpoint): boolean {
  return conditions?.ready !== false;
}

function isDraining({ conditions }: SliceEndpoint): boolean {
  return conditions?.serving !== false && conditions?.terminating === true;
}

function isTcp({ protocol }: Pick<SlicePort, 'protocol'>): boolean {
  return (protocol ?? 'TCP') === 'TCP';
}

/**
 * Writes a host as a URL has it. Empty for what is no host, and for this machine, whose other ports are not for everybody
 * who may write an object.
 */
function hostOf(address: string): readonly string[] {
  const family = isIP(address);
  if (family === 0) return isHost(address.replace(/\.$/, '')) && !leadsToThisMachine(address) ? [address] : [];
  if (isOwnAddress(address)) return [];
  return [family === 6 ? `[${address}]` : address];
}

function addressesOf(
  service: ServiceObject,
  slices: readonly Slice[],
  source: Source,
): Omit<ServiceAddresses, 'isUntrusted'> {
  const { metadata, spec = {} } = service;
  const { namespace, name } = metadata;
  const declared = (spec.ports ?? []).filter(isTcp);
  const isHeadless = spec.clusterIP === 'None';
  const single = singleHostOf(service, source);
  const portsOf = (addressesAt: (port: ServicePort) => readonly string[]) =>
    declared.map((port) => ({ name: port.name ?? '', port: port.port, addresses: addressesAt(port) }));
  if (single !== undefined) {
    const { host, hasAnyPort, portOf } = single;
    const ports = portsOf((port) => host.map((one) => `${one}:${portOf(port)}`));
    const fault = host.length === 0 ? `has an external name that ${faultOf(spec.externalName)}` : undefined;
    return { namespace, name, ports, isHeadless: false, hosts: hasAnyPort ? host : undefined, fault };
  }
  const pick = pickFamily(spec.ipFamilies ?? []);
  const ports = portsOf((port) => pick(slices, (slice) => endpointsAt(port, slice)));
  const hosts = isHeadless && declared.length === 0 ? pick(slices, (slice) => slice) : undefined;
  return { namespace, name, ports, isHeadless, hosts, fault: undefined };
}

interface SingleHost {
  /** Empty if it may not be called. */
  readonly host: readonly string[];
  readonly hasAnyPort: boolean;
  readonly portOf: (port: ServicePort) => number;
}

/** The host of a Service whose pods are not called by their own addresses. Undefined if they are. */
function singleHostOf({ metadata, spec = {} }: ServiceObject, source: Source): SingleHost | undefined {
  const { type, externalName = '', clusterIP = '' } = spec;
  const portOf = ({ port }: ServicePort) => port;
  if (type === 'ExternalName') {
    return { host: hostOf(externalName), hasAnyPort: true, portOf };
  }
  if (source === 'endpoints') return undefined;
  if (isIP(clusterIP) !== 0) return { host: hostOf(clusterIP), hasAnyPort: false, portOf };
  // DNS resolves the name of a headless Service to its pods.
  return { host: [`${metadata.name}.${metadata.namespace}.svc`], hasAnyPort: true, portOf: targetOf };
}

function faultOf(externalName = ''): string {
  return leadsToThisMachine(externalName) ? 'leads to the machine of frontdesk' : 'is not the name of a host';
}

/** The port of the pods, unless it is a name, which only slices resolve. */
function targetOf({ port, targetPort }: ServicePort): number {
  return typeof targetPort === 'number' ? targetPort : port;
}

interface Endpoints {
  readonly ready: readonly string[];
  readonly draining: readonly string[];
}

/** Slices refer to a port of the Service by its name, and have the number that the pods listen on. */
function endpointsAt(port: ServicePort, slice: Slice): Endpoints {
  const numbers = slice.ports
    .filter(({ name }) => (name ?? '') === (port.name ?? ''))
    // A port without a number stands for every port.
    .map((one) => one.port ?? targetOf(port));
  const at = (hosts: readonly string[]) => numbers.flatMap((number) => hosts.map((host) => `${host}:${number}`));
  return { ready: at(slice.ready), draining: at(slice.draining) };
}

type PickFamily = (slices: readonly Slice[], endpointsOf: (slice: Slice) => Endpoints) => readonly string[];

/**
 * With both families, each pod has two addresses. Those of the Service's first family are taken, or the others if there
 * are none, so that a pod is one address for balancing and ejection.
 */
function pickFamily([first, second]: readonly string[]): PickFamily {
  return (slices, endpointsOf) => {
    const ofFirst = second === undefined ? slices : slices.filter(({ addressType }) => addressType !== second);
    const found = usable(ofFirst.map(endpointsOf));
    return found.length > 0 || first === undefined || second === undefined ? found : usable(slices.map(endpointsOf));
  };
}

/** Endpoints that are shutting down are called only if no other is ready. */
function usable(endpoints: readonly Endpoints[]): readonly string[] {
  const ready = endpoints.flatMap((one) => one.ready);
  const found = ready.length > 0 ? ready : endpoints.flatMap(({ draining }) => draining);
  return [...new Set(found)].sort();
}
