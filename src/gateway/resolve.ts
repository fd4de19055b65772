/** Service references to targets: the same records find a module beside us or across the network. */
import { parseServiceReference, type ServiceReference } from '#config';
import type { Target } from './target.ts';

export interface ResolverOptions {
  /** Whether a module or service of that name runs in this process. */
  readonly isLocal: (name: string) => boolean;
  /** Where a module of this process listens, as `host:port`, once it does. */
  readonly listenerOf: (name: string) => string | undefined;
  /** Where services that are not in this process are found, by name, as `host:port` or several of them. */
  readonly addresses: Readonly<Record<string, string | readonly string[]>>;
}

export type Resolve = (reference: string) => Target;

/**
 * A bare `name` is the module of that name if it is in this process, otherwise `http://name`. With a port or a scheme
 * it is always the network; there a name means, in this order, this process's own listener of that name, the addresses
 * from the settings, a host name. However it is found, a certificate must show the name of the reference.
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

/** Addresses are put together when they are first asked for: of 10,000 services most wait long for a request. */
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
  return [known ?? authorityOf(reference)].flat().map((authority) => originAt(reference, authority));
}

function originAt({ scheme = 'http' }: ServiceReference, authority: string): string {
  return `${scheme}://${authority}`;
}

const defaultPorts = { http: 80, https: 443, grpc: 8081 };

function authorityOf({ scheme = 'http', host, port }: ServiceReference): string {
  return `${host}:${port ?? defaultPorts[scheme]}`;
}
