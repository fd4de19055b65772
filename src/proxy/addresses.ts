/** The addresses of one cluster, as its origins come and go: one that stays keeps what is known of it. */
import { type Address, openAddress } from './address.ts';
import type { ClusterSpec } from './cluster.ts';
import type { HealthParts } from './health-check.ts';
import type { Conduct } from './outlier.ts';

export interface Addresses {
  readonly list: () => readonly Address[];
  /** Of the addresses that were listed last, in the same order. */
  readonly conducts: () => readonly Conduct[];
  /** Health checks stop at once; waits for the connections, those of addresses that are gone as well. */
  readonly close: () => Promise<void>;
}

/** Where health is checked, the origins are asked for as often, traffic or not. */
export function createAddresses(spec: ClusterSpec, parts: HealthParts): Addresses {
  const leaving = new Set<Promise<void>>();
  let origins: readonly string[] = [];
  let addresses: readonly Address[] = [];
  let conducts: readonly Conduct[] = [];
  let isClosed = false;
  let cancel = spec.healthCheck === undefined ? () => {} : parts.timer(look, 0);

  function look(): void {
    list();
    cancel = parts.timer(look, spec.healthCheck?.intervalMs ?? 0);
  }

  function list(): readonly Address[] {
    const asked = spec.origins();
    if (asked !== origins) update(asked);
    return addresses;
  }

  function update(asked: readonly string[]): void {
    origins = asked;
    const known = new Map(addresses.map((address) => [address.origin, address]));
    const next = [...new Set(asked)].map((origin) => known.get(origin) ?? openAddress(origin, spec, parts));
    for (const { origin } of next) known.delete(origin);
    for (const gone of known.values()) leave(gone);
    addresses = next;
    conducts = next.map(({ conduct }) => conduct);
    // Nobody will come again to end what rests.
    if (isClosed) for (const address of next) void address.close();
  }

  function leave(address: Address): void {
    const closed = address.close().finally(() => leaving.delete(closed));
    leaving.add(closed);
  }

  return Object.freeze({
    list,
    conducts: () => conducts,
    async close() {
      isClosed = true;
      cancel();
      await Promise.all([...leaving, ...addresses.map((address) => address.close())]);
    },
  });
}
