/** Resolves service references to modules in this process or to network addresses. */
import { type AuthService, type Fault, parseServiceReference, type ServiceReference } from '#config';

export type Target =
  | { readonly kind: 'local'; readonly name: string }
  /**
   * `origins` returns scheme, host and port of each address. It is a function because addresses may become known late
   * or change, and it returns the same array until one does. `whyEmpty` says why there is none. `path` is the base path
   * of the service: `''` or `/base`. `serverName` is the name that the certificate of an HTTPS address must contain, by
   * default its host.
   */
  | {
      readonly kind: 'remote';
      readonly origins: () => readonly string[];
      /** Undefined for a service that always has an address. */
      readonly whyEmpty?: (() => Fault | undefined) | undefined;
      /** True if the settings have the addresses, which may then be of this machine for any record. @default false */
      readonly isConfigured?: boolean;
      /** Returns whether a Service of a namespace that is not trusted has the addresses. @default never */
      readonly haveStrangersChosen?: (() => boolean) | undefined;
      readonly path: string;
      readonly serverName?: string | undefined;
    };

export type RemoteTarget = Extract<Target, { kind: 'remote' }>;

/** Describes a target for humans: `in this process`, `http://10.0.0.1:9001/base`, `no address: no ready endpoint`. */
export function describeTarget(target: Target): string {
  if (target.kind === 'local') return 'in this process';
  const origins = target.origins();
  if (origins.length === 0) return `no address: ${target.whyEmpty?.()?.message ?? 'the list is empty'}`;
  return origins.map((origin) => origin + target.path).join(', ');
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
  /** Addresses that come and go while the gateway runs. @default none */
  readonly liveAddresses?: LiveAddresses | undefined;
}

/**
 * Returns a function that returns the current addresses for a reference, or undefined while its name is unknown. Returns
 * undefined itself for a name that can never be known. `defaultPort` is the port of the scheme.
 */
export type LiveAddresses = (
  reference: ServiceReference,
  defaultPort: number,
) => (() => LiveList | undefined) | undefined;

/** The current addresses of a service. */
export interface LiveList {
  /** As `host:port`. The same array until one changes. */
  readonly addresses: readonly string[];
  /** Why there is none, and what to do about it. Undefined if there is one. */
  readonly whyEmpty: Fault | undefined;
  /** Whether they are of a Service in a namespace that is not trusted. They must not be of this machine then. */
  readonly isUntrusted: boolean;
}

export type Resolve = (reference: string) => Target;

/**
 * A bare `name` refers to the module with that name if it runs in this process, or else to `http://name`. A reference
 * with a port or a scheme always refers to the network. There, a name is looked up first among this process's own
 * listeners, then among the addresses from the settings, then among the live addresses, and is otherwise a host name.
 * In all cases, the certificate must match the name in the reference.
 */
export function createResolve({ isLocal, listenerOf, addresses, liveAddresses }: ResolverOptions): Resolve {
  if (typeof isLocal !== 'function' || typeof listenerOf !== 'function' || addresses === undefined)
    throw new TypeError('createResolve needs `isLocal` and `listenerOf`, which are functions, and `addresses`');
  return (reference) => {
    const parsed = parseServiceReference(reference);
    if (parsed === undefined) throw new TypeError(`"${reference}" is not a service reference`);
    if (parsed.scheme === undefined && parsed.port === undefined && isLocal(parsed.host)) {
      return { kind: 'local', name: parsed.host };
    }
    const fixed = originsOf(parsed, listenerOf, addresses);
    const isConfigured = Object.hasOwn(addresses, parsed.host);
    const live = isConfigured ? undefined : liveAddresses?.(parsed, defaultPortOf(parsed));
    return {
      kind: 'remote',
      isConfigured,
      ...(live === undefined ? { origins: fixed } : liveOrigins(parsed, live, fixed)),
      path: parsed.path ?? '',
      serverName: withoutPortName(parsed.host),
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

/** Uses the fixed origins while nothing else is known of the reference. */
function liveOrigins(
  { scheme = 'http' }: ServiceReference,
  live: () => LiveList | undefined,
  fixed: () => readonly string[],
): Pick<RemoteTarget, 'origins' | 'whyEmpty' | 'haveStrangersChosen'> {
  let known: readonly string[] | undefined;
  let origins: readonly string[] = [];
  return {
    origins() {
      const found = live()?.addresses;
      if (found === undefined) return fixed();
      if (found !== known) origins = found.map((authority) => `${scheme}://${authority}`);
      known = found;
      return origins;
    },
    whyEmpty: () => live()?.whyEmpty,
    haveStrangersChosen: () => live()?.isUntrusted === true,
  };
}

/** Drops the labels of a service name with a named port, such as `_http._tcp.orders.shop` (RFC 2782). */
function withoutPortName(host: string): string {
  return host.replace(/^_[^.]+\._[^.]+\./, '');
}

const defaultPorts = { http: 80, https: 443, grpc: 8081 };

function authorityAt({ scheme = 'http', host, port }: ServiceReference): string {
  return `${host}:${port ?? defaultPortOf({ scheme })}`;
}

function defaultPortOf({ scheme = 'http' }: Pick<ServiceReference, 'scheme'>): number {
  return defaultPorts[scheme];
}
