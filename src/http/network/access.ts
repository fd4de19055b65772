/** Decides by lists of networks whether a client may come at all. */
import { problem } from '../problem.ts';
import { createNetworks } from './networks.ts';

/** Lists of addresses and networks in CIDR notation. */
export interface AddressLists {
  /** If it is not empty, all other addresses are refused. */
  readonly allowAddresses: readonly string[];
  /** Refused, even if the other list contains them. */
  readonly denyAddresses: readonly string[];
}

/** Returns why an address is refused, for operators. Undefined if it may come. An unknown address is `''`. */
export type AddressFault = (address: string) => string | undefined;

/**
 * Returns undefined when both lists are empty. `where` names the lists in the reasons: `ALLOW_ADDRESSES`. An unknown
 * address is refused if there is an allow list, because it may be none of those that are allowed.
 */
export function createAddressFault(
  { allowAddresses, denyAddresses }: AddressLists,
  where: { readonly allow: string; readonly deny: string },
): AddressFault | undefined {
  if (allowAddresses.length + denyAddresses.length === 0) return undefined;
  const isAllowed = allowAddresses.length === 0 ? () => true : createNetworks(allowAddresses);
  const isDenied = createNetworks(denyAddresses);
  return function faultOfAddress(address) {
    if (isDenied(address)) return `${address} is in ${where.deny}.`;
    if (isAllowed(address)) return undefined;
    return address === ''
      ? `The address is unknown, and there is ${where.allow}.`
      : `${address} is not in ${where.allow}.`;
  };
}

const shownMax = 3;

/** Describes the lists: `only from 10.0.0.0/8, not from 10.0.0.9`. `''` when both are empty. */
export function describeAddressLists({ allowAddresses, denyAddresses }: AddressLists): string {
  const parts = [
    allowAddresses.length === 0 ? '' : `only from ${listText(allowAddresses)}`,
    denyAddresses.length === 0 ? '' : `not from ${listText(denyAddresses)}`,
  ];
  return parts.filter(Boolean).join(', ');
}

function listText(networks: readonly string[]): string {
  const more = networks.length - shownMax;
  return [...networks.slice(0, shownMax), ...(more > 0 ? [`${more} more`] : [])].join(' or ');
}

/** Throws `address-denied`. The client does not learn the reason, because that would reveal the lists. */
export function rejectAddress(fault: string | undefined): void {
  if (fault !== undefined) throw problem('address-denied', { cause: fault });
}
