/** Keeps connections away from this machine, for services that only a trusted record may name. */
import dns from 'node:dns';
import type { LookupFunction } from 'node:net';
import { isOwnAddress } from '#foundation';

/** The address of a service is of this machine, or of its link, and its record must not lead there. */
export class OwnMachine extends Error {
  override readonly name = 'OwnMachine';
  readonly code = 'OWN_MACHINE';
}

/**
 * Returns a function that creates the error for a host of a URL that is an address of this machine. Undefined for others,
 * and for names, which Node looks up when it connects.
 */
export function ownMachineFault(host: string): (() => OwnMachine) | undefined {
  const address = host.replace(/^\[|\]$/g, '');
  return isOwnAddress(address) ? () => new OwnMachine(`${address} ${isOwn}`) : undefined;
}

/**
 * The `lookup` of a connection that must not lead to this machine. It runs for each connection, so a name cannot lead there
 * later either. One such address refuses the whole name: only an attack or a mistake gives it one.
 */
export const lookupElsewhere: LookupFunction = (host, options, done) => {
  dns.lookup(host, options, (failure, found, family) => {
    const addresses = typeof found === 'string' ? [found] : (found ?? []).map(({ address }) => address);
    const own = addresses.find(isOwnAddress);
    if (failure === null && own !== undefined) done(new OwnMachine(`${host} resolves to ${own}, which ${isOwn}`), []);
    else done(failure, found, family);
  });
};

const isOwn = 'is the machine of frontdesk or its network link';
