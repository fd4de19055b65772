/** Service references to targets: the same records find a module beside us or across the network. */
import { parseServiceReference, type ServiceReference } from '#config';
import type { Target } from './target.ts';

export interface ResolverOptions {
  /** Whether a module or service of that name runs in this process. */
  readonly isLocal: (name: string) => boolean;
  /** Where a module of this process listens, as `host:port`, once it does. */
  readonly listenerOf: (name: string) => string | undefined;
  /** Where services that are not in this process are found, by name, as `host:port`. */
  readonly addresses: Readonly<Record<string, string>>;
}

export type Resolve = (reference: string) => Target;

/**
 * A bare `name` is the module of that name if it is in this process, otherwise `http://name`. With a port or a scheme
 * it is always the network; there a name means, in this order, this process's own listener of that name, an address
 * from the settings, a host name.
 */
export function createResolve({ isLocal, listenerOf, addresses }: ResolverOptions): Resolve {
  return (reference) => {
    const parsed = parseServiceReference(reference);
    if (parsed === undefined) throw new TypeError(`"${reference}" is not a service reference`);
    if (parsed.scheme === undefined && parsed.port === undefined && isLocal(parsed.host)) {
      return { kind: 'local', name: parsed.host };
    }
    const { scheme = 'http', path = '' } = parsed;
    const known = Object.hasOwn(addresses, parsed.host) ? addresses[parsed.host] : undefined;
    const origin = () => `${scheme}://${listenerOf(parsed.host) ?? known ?? authorityOf(parsed)}`;
    return { kind: 'remote', origin, path };
  };
}

const defaultPorts = { http: 80, https: 443, grpc: 8081 };

function authorityOf({ scheme = 'http', host, port }: ServiceReference): string {
  return `${host}:${port ?? defaultPorts[scheme]}`;
}
