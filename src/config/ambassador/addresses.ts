/** Translates `ip_allow` and `ip_deny` of the Module ambassador to lists of addresses for the whole gateway. */
import { isMap, type Source } from '#foundation';
import type { PlacedFault } from '../errors.ts';
import { isNetwork } from '../fields/addresses.ts';
import { isEmpty } from './readers.ts';

/** Clients that may come to the gateway and clients that may not, in addition to those of the settings. */
export interface AddressRecord {
  readonly allowAddresses: readonly string[];
  readonly denyAddresses: readonly string[];
  readonly source: Source;
}

/** The fields of a Module that are translated. */
export const addressOptions = ['ip_allow', 'ip_deny'] as const;

/**
 * Returns an error for a list that is not of clients (`remote`). Ambassador's `peer` is the address of the connection,
 * which is that of a proxy if there is one, so it would refuse or admit other clients here.
 */
export function principalFaults(value: unknown, path: readonly string[]): readonly PlacedFault[] {
  if (isEmpty(value) || networksOf(value) !== undefined) return [];
  const message = `${path.join('.')} protects requests, and is not supported`;
  const remedy =
    'Write each entry as remote: with an address or a network. For peer, let a firewall check the addresses of connections.';
  return [{ path, message, remedy }];
}

/** Expects a Module without faults. Undefined if it has no such lists. */
export function addressRecord(config: unknown, source: Source): AddressRecord | undefined {
  const [allow, deny] = addressOptions.map((name) => networksOf(isMap(config) ? config[name] : undefined) ?? []);
  if (allow === undefined || deny === undefined || allow.length + deny.length === 0) return undefined;
  return { allowAddresses: allow, denyAddresses: deny, source };
}

/** Undefined for anything but a list of maps with `remote` alone. */
function networksOf(value: unknown): readonly string[] | undefined {
  if (!Array.isArray(value)) return undefined;
  const networks = value.map((entry) =>
    isMap(entry) && Object.keys(entry).length === 1 ? entry['remote'] : undefined,
  );
  return networks.every((one): one is string => typeof one === 'string' && isNetwork(one)) ? networks : undefined;
}
