/** The certificates that listeners of Gateways serve, which come from Secrets of a cluster. */
import { isDeepStrictEqual } from 'node:util';
import { allCertificates, factsOf, type ServerCertificate, type Tls } from './certificates.ts';
import type { KeyPair } from './pem.ts';

/** The certificate of a listener, in which `certificateFault` finds nothing. */
export interface ServedCertificate extends KeyPair {
  /** `Secret shop/shop-tls`. A Secret of several listeners is the same one. */
  readonly name: string;
  /**
   * The hostname of the listener: `shop.example`, or `*.shop.example`, in which `*` stands for one label or several.
   * Undefined for a listener without one, whose certificate is for all other clients.
   */
  readonly hosts: readonly string[] | undefined;
}

/** What has not changed since `last` consists of the same objects. */
export function tlsOf(served: readonly ServedCertificate[], { clientCa }: Pick<Tls, 'clientCa'>, last?: Tls): Tls {
  const known = new Map((last === undefined ? [] : allCertificates(last)).map((one) => [one.name, one]));
  const make = (one: ServedCertificate, hosts: readonly string[]) => certificateOf(one, hosts, known.get(one.name));
  const bySecret = new Map<string, { readonly one: ServedCertificate; readonly hosts: Set<string> }>();
  for (const one of served) {
    const { hosts = [] } = bySecret.get(one.name) ?? {};
    bySecret.set(one.name, { one, hosts: new Set([...hosts, ...(one.hosts ?? [])]) });
  }
  const withHosts = [...bySecret.values()].filter(({ hosts }) => hosts.size > 0);
  const certificates = withHosts.map(({ one, hosts }) => make(one, [...hosts]));
  const forOthers = served.find(({ hosts }) => hosts === undefined);
  const fallback = forOthers && (certificates.find(({ name }) => name === forOthers.name) ?? make(forOthers, []));
  return { certificates, fallback, clientCa };
}

/** Without hosts of listeners, it has those that the certificate lists, for people. */
function certificateOf(
  { name, cert, key }: ServedCertificate,
  ofListeners: readonly string[],
  last: ServerCertificate | undefined,
): ServerCertificate {
  const isSame = last?.cert === cert && last.key === key;
  const { hosts: listed, validFromMs, validToMs } = factsOf(cert, name);
  const hosts = ofListeners.length === 0 ? listed : ofListeners;
  if (isSame && isDeepStrictEqual(last.hosts, hosts)) return last;
  return { name, file: name, cert, key, hosts, validFromMs, validToMs };
}
