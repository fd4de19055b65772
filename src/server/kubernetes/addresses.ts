/** The addresses of a cluster's Services: the gateway looks them up by reference, and each thread has a copy. */
import type { Fault } from '#config';
import type { LiveAddresses, LiveList } from '#gateway';
import type { ChangedService, ServiceAddresses } from '#kubernetes';

export interface ClusterAddresses {
  /** For `createResolve`. */
  readonly liveAddresses: LiveAddresses;
  readonly apply: (changes: readonly ChangedService[]) => void;
  /** Takes the place of all that is known: the Services that are not listed do not exist. */
  readonly replace: (all: readonly ServiceAddresses[]) => void;
  /** Returns all that is known: the same array until something changes. */
  readonly snapshot: () => readonly ServiceAddresses[];
  /** Calls the listener with each later change. */
  readonly onChange: (listener: (changes: readonly ChangedService[]) => void) => void;
}

export function createClusterAddresses(): ClusterAddresses {
  const services = new Map<string, ServiceAddresses>();
  const servicesIn = new Map<string, number>();
  const listeners: ((changes: readonly ChangedService[]) => void)[] = [];
  let snapshot: readonly ServiceAddresses[] | undefined;
  let version = 0;

  function set(namespace: string, name: string, addresses: ServiceAddresses | undefined): void {
    const key = `${namespace}/${name}`;
    const count = (servicesIn.get(namespace) ?? 0) - (services.delete(key) ? 1 : 0);
    if (addresses !== undefined) services.set(key, addresses);
    const now = count + (addresses === undefined ? 0 : 1);
    if (now === 0) servicesIn.delete(namespace);
    else servicesIn.set(namespace, now);
  }

  function apply(changes: readonly ChangedService[]): void {
    if (changes.length === 0) return;
    for (const { namespace, name, addresses } of changes) set(namespace, name, addresses);
    snapshot = undefined;
    version += 1;
    for (const listener of listeners) listener(changes);
  }

  function find(name: ClusterName, port: WantedPort): LiveList | undefined {
    const service = services.get(`${name.namespace}/${name.service}`);
    if (service !== undefined) return listOf(service, port);
    // DNS cannot resolve a named port to an address.
    if (!servicesIn.has(name.namespace) && port.name === undefined) return undefined;
    const message = `the cluster has no Service ${name.service} in the namespace ${name.namespace}`;
    return none({ message, remedy: 'Create it, or correct the name in the record.' });
  }

  return Object.freeze({
    liveAddresses({ host, port }: Parameters<LiveAddresses>[0], defaultPort: number) {
      const name = parseClusterName(host);
      if (name === undefined) return undefined;
      const wanted = { name: name.port, number: port, defaultNumber: defaultPort };
      let seen = -1;
      let list: LiveList | undefined;
      return () => {
        if (seen !== version) list = keepEqual(list, find(name, wanted));
        seen = version;
        return list;
      };
    },
    apply,
    replace(all: readonly ServiceAddresses[]) {
      const listed = new Set(all.map(({ namespace, name }) => `${namespace}/${name}`));
      const gone = [...services].filter(([key]) => !listed.has(key)).map(([, service]) => service);
      apply([
        ...gone.map(({ namespace, name }) => ({ namespace, name, addresses: undefined })),
        ...all.map((addresses) => ({ namespace: addresses.namespace, name: addresses.name, addresses })),
      ]);
    },
    snapshot() {
      snapshot ??= [...services.values()];
      return snapshot;
    },
    onChange: (listener: (changes: readonly ChangedService[]) => void) => void listeners.push(listener),
  });
}

interface ClusterName {
  readonly namespace: string;
  readonly service: string;
  /** The name of a port. */
  readonly port: string | undefined;
}

const label = '[a-z0-9](?:[a-z0-9-]*[a-z0-9])?';
const clusterName = new RegExp(
  `^(?:_(${label})\\._tcp\\.)?(${label})\\.(${label})(?:\\.svc(?:\\.cluster\\.local)?)?$`,
  'i',
);

/** Parses `orders.shop`, `orders.shop.svc`, `orders.shop.svc.cluster.local`, and each of them after `_http._tcp.`. */
function parseClusterName(host: string): ClusterName | undefined {
  const [, port, service, namespace] = clusterName.exec(host.toLowerCase()) ?? [];
  return service === undefined || namespace === undefined ? undefined : { namespace, service, port };
}

/** The port that a reference names, if any. */
interface WantedPort {
  readonly name: string | undefined;
  readonly number: number | undefined;
  readonly defaultNumber: number;
}

function listOf(service: ServiceAddresses, wanted: WantedPort): LiveList {
  if (service.fault !== undefined)
    return none({ message: `${describe(service)} ${service.fault}`, remedy: 'Correct its external name.' });
  const addresses = addressesAt(service, wanted);
  if (addresses === undefined) return none(missingPort(service, wanted));
  return addresses.length === 0
    ? none(noEndpoint(service))
    : { addresses, whyEmpty: undefined, isUntrusted: service.isUntrusted };
}

/** Undefined if the Service has no such port. Without a port, its only one is meant, or else that of the scheme. */
function addressesAt(service: ServiceAddresses, wanted: WantedPort): readonly string[] | undefined {
  const { ports, hosts, isHeadless } = service;
  if (wanted.name !== undefined) return ports.find(({ name }) => name === wanted.name)?.addresses;
  if (wanted.number === undefined && ports.length === 1) return ports[0]?.addresses;
  const number = wanted.number ?? wanted.defaultNumber;
  const declared = ports.find(({ port }) => port === number)?.addresses;
  return declared ?? hosts?.map((host) => `${host}:${number}`) ?? (isHeadless ? podsAt(service, number) : undefined);
}

/** The pods of a headless Service that listen on this port. Undefined if all of them listen on others. */
function podsAt({ ports }: ServiceAddresses, number: number): readonly string[] | undefined {
  const all = ports.flatMap(({ addresses }) => addresses);
  const found = all.filter((address) => address.endsWith(`:${number}`));
  return found.length === 0 && all.length > 0 ? undefined : [...new Set(found)];
}

function noEndpoint({ namespace, name }: ServiceAddresses): Fault {
  const command = `kubectl get endpointslices -n ${namespace} -l kubernetes.io/service-name=${name}`;
  return { message: 'no ready endpoint', remedy: `Look at its pods, which ${command} lists.` };
}

function missingPort(found: ServiceAddresses, wanted: WantedPort): Fault {
  const { ports } = found;
  const service = describe(found);
  const known = ports.map((port) => (port.name === '' ? String(port.port) : `${port.name} (${port.port})`)).join(', ');
  if (wanted.name === undefined && wanted.number === undefined)
    return ports.length === 0
      ? { message: `${service} has no port for TCP`, remedy: 'Add one to it, or name another Service.' }
      : {
          message: `${service} has several ports, so name one: ${known}`,
          remedy: `Write it after the name, such as service: ${found.name}:${ports[0]?.name || ports[0]?.port}`,
        };
  const missing = `${service} has no port ${wanted.name ?? wanted.number}`;
  const message = known === '' ? missing : `${missing}: it has ${known}`;
  return { message, remedy: 'Correct the port in the record, or add it to the Service.' };
}

function describe({ namespace, name }: ServiceAddresses): string {
  return `Service ${name} in the namespace ${namespace}`;
}

function none(whyEmpty: Fault): LiveList {
  return { addresses: [], whyEmpty, isUntrusted: true };
}

/** Keeps the list if a change of the Service does not concern it, because a new array costs the proxy a comparison. */
function keepEqual(known: LiveList | undefined, found: LiveList | undefined): LiveList | undefined {
  if (known === undefined || found === undefined || known.whyEmpty?.message !== found.whyEmpty?.message) return found;
  const { addresses } = found;
  const isEqual =
    known.addresses.length === addresses.length && known.addresses.every((text, at) => text === addresses[at]);
  return isEqual ? known : found;
}
