/** Resolves service references to modules in this process or to network addresses. */
import { type AuthService, parseServiceReference, type ServiceReference } from '#config';

export type Target =
  | { readonly kind: 'local'; readonly name: string }
  /**
   * `origins` returns scheme, host and port of each address, at least one. It is a function because a listener's port
   * may become known late, and it returns the same array until an address changes. `path` is the base path of the
   * service: `''` or `/base`. `serverName` is the name that the certificate of an HTTPS address must contain, by
   * default its host.
   */
  | {
      readonly kind: 'remote';
      readonly origins: () => readonly string[];
      readonly path: string;
      readonly serverName?: string | undefined;
    };

export type RemoteTarget = Extract<Target, { kind: 'remote' }>;

/** Describes a target for humans: `in this process`, `http://10.0.0.1:9001/base`. */
export function describeTarget(target: Target): string {
  if (target.kind === 'local') return 'in this process';
  return target
    .origins()
    .map((origin) => origin + target.path)
    .join(', ');
}

/** The same with ` (gRPC)`, for a record that chooses how its service is called. */
export function describeAuthTarget(target: Target, { proto }: Pick<AuthService, 'proto'>): string {
  return describeTarget(target) + (target.kind === 'remote' && proto === 'grpc' ? ' (gRPC)' : '');
}

/** Returns host and port of a service reference, so that different spellings of the same address are equal. */
export function authorityOf(reference: string): string {
  const parsed = parseServiceReference(reference);
  return parsed === undefined ? reference : authorityAt(parsed);
}

export interface ResolverOptions {
  /** Whether a module or service with this name runs in this process. */
  readonly isLocal: (name: string) => boolean;
  /** Returns the address where a module of this process listens, as `host:port`. Undefined before it listens. */
  readonly listenerOf: (name: string) => string | undefined;
  /** Addresses of services in other processes, by name, as one `host:port` or several. */
  readonly addresses: Readonly<Record<string, string | readonly string[]>>;
}

export type Resolve = (reference: string) => Target;

/**
 * A bare `name` refers to the module with that name if it runs in this process, or else to `http://name`. A reference
 * with a port or a scheme always refers to the network. There, a name is looked up first among this process's own
 * listeners, then among the addresses from the settings, and is otherwise a host name. In all cases, the certificate
 * must match the name in the reference.
 */
export function createResolve({ isLocal, listenerOf, addresses }: ResolverOptions): Resolve {
  if (typeof isLocal !== 'function' || typeof listenerOf !== 'function' || addresses === undefined)
    throw new TypeError('createResolve needs `isLocal` and `listenerOf`, which are functions, and `addresses`');
  return (reference) => {
    const parsed = parseServiceReference(reference);
    if (parsed === undefined) throw new TypeError(`"${reference}" is not a service reference`);
    if (parsed.scheme === undefined && parsed.port === undefined && isLocal(parsed.host)) {
      return { kind: 'local', name: parsed.host };
    }
    return {
      kind: 'remote',
      origins: originsOf(parsed, listenerOf, addresses),
      path: parsed.path ?? '',
      serverName: parsed.host,
    };
  };
}

/**
 * Resolves the reference of a RateLimitService. Without a scheme, a service outside this process is called over gRPC.
 */
export function resolveLimiter(resolve: Resolve, reference: string): Target {
  const target = resolve(reference);
  return target.kind === 'local' || reference.includes('://') ? target : resolve(`grpc://${reference}`);
}

/** The form that sockets expect: an IPv6 host has no brackets. `port` is 0 if the origin has no port. */
export interface HostAndPort {
  readonly host: string;
  readonly port: number;
}

/**
 * Splits an origin such as `grpc://host:port`. The default ports of http and https are lost, because URL drops them.
 */
export function hostAndPort(origin: string): HostAndPort {
  const { hostname, port } = new URL(origin);
  return { host: hostname.replace(/^\[|\]$/g, ''), port: Number(port) };
}

function originsOf(
  reference: ServiceReference,
  listenerOf: ResolverOptions['listenerOf'],
  addresses: ResolverOptions['addresses'],
): () => readonly string[] {
  const { scheme = 'http', host } = reference;
  const configured = (Object.hasOwn(addresses, host) ? addresses[host] : undefined) ?? authorityAt(reference);
  let origins: readonly string[] | undefined;
  let listener: string | undefined;
  return () => {
    const address = listenerOf(host);
    if (origins === undefined || address !== listener)
      origins = [address ?? configured].flat().map((authority) => `${scheme}://${authority}`);
    listener = address;
    return origins;
  };
}

const defaultPorts = { http: 80, https: 443, grpc: 8081 };

function authorityAt({ scheme = 'http', host, port }: ServiceReference): string {
  return `${host}:${port ?? defaultPorts[scheme]}`;
}
