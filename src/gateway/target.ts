/** Where a service reference leads: to a module of this process, or to addresses on the network. */
import { parseServiceReference, type ServiceReference } from '#config';

export type Target =
  | { readonly kind: 'local'; readonly name: string }
  /**
   * `origins` returns scheme, host and port of each address, at least one. It is a function because a listener's port may
   * be known late; it returns the same array until an address changes. `path` comes before every path that is sent there:
   * `''`, or `/base`. `serverName` is the name that the certificate of an HTTPS address must show; without one its host.
   */
  | {
      readonly kind: 'remote';
      readonly origins: () => readonly string[];
      readonly path: string;
      readonly serverName?: string | undefined;
    };

export type RemoteTarget = Extract<Target, { kind: 'remote' }>;

/** For people: `in this process`, `http://10.0.0.1:9001/base`. */
export function describeTarget(target: Target): string {
  if (target.kind === 'local') return 'in this process';
  return target
    .origins()
    .map((origin) => origin + target.path)
    .join(', ');
}

/** Host and port of a service reference, whatever its spelling. */
export function authorityOf(reference: string): string {
  const parsed = parseServiceReference(reference);
  return parsed === undefined ? reference : authorityAt(parsed);
}

export interface ResolverOptions {
  /** Whether a module or service of that name runs in this process. */
  readonly isLocal: (name: string) => boolean;
  /** The address where a module of this process listens, as `host:port`; undefined before it listens. */
  readonly listenerOf: (name: string) => string | undefined;
  /** Addresses of services in other processes, by name, as one `host:port` or several. */
  readonly addresses: Readonly<Record<string, string | readonly string[]>>;
}

export type Resolve = (reference: string) => Target;

/**
 * A bare `name` is the module of that name if it runs in this process, otherwise `http://name`. A reference with a port
 * or a scheme always leads to the network; there a name means, in this order, this process's own listener of that name,
 * the addresses from the settings, a host name. In each case a certificate must show the name of the reference.
 */
export function createResolve({ isLocal, listenerOf, addresses }: ResolverOptions): Resolve {
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

/** Where a RateLimitService leads: a reference that names no module of this process and no scheme is asked over gRPC. */
export function resolveLimiter(resolve: Resolve, reference: string): Target {
  const target = resolve(reference);
  return target.kind === 'local' || reference.includes('://') ? target : resolve(`grpc://${reference}`);
}

/** As a socket takes them. `port` is 0 where the origin has none. */
export interface HostAndPort {
  readonly host: string;
  readonly port: number;
}

/** Of an origin, also of `grpc://host:port`: URL leaves out the default port of a scheme, and knows none for grpc. */
export function hostAndPort(origin: string): HostAndPort {
  const { hostname, port } = new URL(origin);
  return { host: hostname.replace(/^\[|\]$/g, ''), port: Number(port) };
}

function originsOf(
  reference: ServiceReference,
  listenerOf: ResolverOptions['listenerOf'],
  addresses: ResolverOptions['addresses'],
): () => readonly string[] {
  let elsewhere: readonly string[] | undefined;
  let listener: string | undefined;
  let here: readonly string[] = [];
  return () => {
    const now = listenerOf(reference.host);
    if (now === undefined) {
      elsewhere ??= originsAt(reference, addresses);
      return elsewhere;
    }
    if (now !== listener) here = [originAt(reference, now)];
    listener = now;
    return here;
  };
}

function originsAt(reference: ServiceReference, addresses: ResolverOptions['addresses']): readonly string[] {
  const { host } = reference;
  const known = Object.hasOwn(addresses, host) ? addresses[host] : undefined;
  return [known ?? authorityAt(reference)].flat().map((authority) => originAt(reference, authority));
}

function originAt({ scheme = 'http' }: ServiceReference, authority: string): string {
  return `${scheme}://${authority}`;
}

const defaultPorts = { http: 80, https: 443, grpc: 8081 };

function authorityAt({ scheme = 'http', host, port }: ServiceReference): string {
  return `${host}:${port ?? defaultPorts[scheme]}`;
}
