/** What the records of a cluster name: services of their namespace, modules of this process, and records of others. */
import { isOwnAddress } from '#foundation';
import { isHost, isLoopback } from '../fields/addresses.ts';

/**
 * Returns the name of a record from a namespace: `orders.shop`, or `orders` in the namespace `default`. A name with dots
 * from there has its namespace too, because `orders.shop` could be that of another namespace.
 */
export function nameIn(namespace: string, name: string): string {
  return namespace === 'default' && !name.includes('.') ? name : `${name}.${namespace}`;
}

/** Captures the scheme, the host, the number or name of a port, and the rest. */
const reference = /^((?:[a-z]+:\/\/)?)([^:/?#@\s[\]]+)(?::([\w-]+))?((?:\/.*)?)$/i;

/**
 * Returns the reference of a record in `namespace` as other parts of frontdesk understand it. `stock` becomes
 * `stock.shop`, `stock:http` becomes `_http._tcp.stock.shop`, which is Kubernetes' own name of a port (RFC 2782), and
 * `frontdesk:auth` becomes `auth`, the module of this process. An address and a name with dots stay as they are, but for
 * the domain of the cluster.
 */
export function referenceIn(namespace: string, written: string): string {
  const [, scheme = '', host, port, rest = ''] = reference.exec(written) ?? [];
  if (host === undefined) return written;
  if (scheme === '' && host === 'frontdesk' && isOwnModule(port)) return port;
  const name = clusterName(isLocalName(host) ? `${host}.${namespace}` : host);
  const isNumber = port === undefined || /^\d+$/.test(port);
  return isNumber ? `${scheme}${name}${port ? `:${port}` : ''}${rest}` : `${scheme}_${port}._tcp.${name}${rest}`;
}

/** Reports whether a reference is a module of this process: `frontdesk:auth`. */
export function namesOwnModule(written: string): boolean {
  const [, scheme = '', host, port] = reference.exec(written) ?? [];
  return scheme === '' && host === 'frontdesk' && isOwnModule(port);
}

/**
 * Leaves out the domain of the cluster, but only after a name and a namespace: `auth.svc` is not a module, nor
 * `localhost.svc` this machine. A namespace that is a number would make an IPv4 address of the rest.
 */
function clusterName(host: string): string {
  const [, name] = /^([^.]+\.[^.]+?)(?:\.svc(?:\.cluster\.local)?\.?)?$/.exec(host) ?? [];
  if (name === undefined) return host;
  return isHost(name) ? name : `${name}.svc`;
}

/** Returns the reference to a port of a Service, which is never this machine or a module of this process. */
export function referenceToService(namespace: string, name: string, port: number): string {
  return `${clusterName(`${name}.${namespace}`)}:${port}`;
}

function isOwnModule(port: string | undefined): port is 'auth' | 'ratelimit' {
  return port === 'auth' || port === 'ratelimit';
}

function isLocalName(host: string): boolean {
  return !host.includes('.') && !isLoopback(host);
}

/**
 * Reports whether a reference leads to the machine or the pod where frontdesk runs, whose other ports are not for
 * everybody, or to its neighbours on the link, where clouds have the credentials of the machine. A name that DNS leads
 * there is refused when it is called.
 */
export function leadsToThisMachine(written: string): boolean {
  const [, address = ''] = /^(?:[a-z]+:\/\/)?(\[[^\]]*\]|[^:/?#@\s[\]]+)/i.exec(written) ?? [];
  // The URL has the usual form of an address, which systems also read as 127.1, 0x7f.1 or [0:0::1].
  const host = URL.canParse(`http://${address}`) ? new URL(`http://${address}`).hostname.replace(/\.$/, '') : '';
  return host === 'localhost' || host.endsWith('.localhost') || isOwnAddress(host.replace(/^\[|\]$/g, ''));
}
