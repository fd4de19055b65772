/** Keeps connections away from this machine, for services that only a trusted record may name. */
import dns from 'node:dns';
import { connect, isIP, type LookupFunction, Socket } from 'node:net';
import os from 'node:os';
import { isOwnAddress, usualAddress } from '#foundation';

/** The address of a service is of this machine, or of its link, and its record must not lead there. */
export class OwnMachine extends Error {
  override readonly name = 'OwnMachine';
  readonly code = 'OWN_MACHINE';
}

export interface MachineGuard {
  /**
   * Returns the error for a host of a URL that is an address of this machine. Undefined for others, and for names, which
   * Node looks up when it connects. Call it for each connection, because the addresses of this machine change.
   */
  readonly faultOf: (host: string) => OwnMachine | undefined;
  /**
   * The `lookup` of a connection. It runs for each connection, so a name cannot lead to this machine later either. One
   * such address refuses the whole name: only an attack or a mistake gives it one.
   */
  readonly lookup: LookupFunction;
  /** Returns a socket that connects, or that fails because the address is of this machine. */
  readonly connect: (address: { readonly host: string; readonly port: number }) => Socket;
}

/**
 * `clock` returns the time in milliseconds. The modules of this process listen on the addresses of its interfaces, too: in
 * a pod on that of the pod, where no NetworkPolicy holds for connections of the pod to itself.
 */
export function createMachineGuard(clock: () => number): MachineGuard {
  let ofInterfaces: ReadonlySet<string | undefined> = new Set();
  let readAtMs = Number.NEGATIVE_INFINITY;

  function isOfThisMachine(address: string): boolean {
    return isOwnAddress(address) || interfaceAddresses().has(usualAddress(address));
  }

  /** They are read once in a second, because that takes as long as a quarter of opening a connection. */
  function interfaceAddresses(): ReadonlySet<string | undefined> {
    const nowMs = clock();
    if (nowMs - readAtMs < 1000) return ofInterfaces;
    readAtMs = nowMs;
    const found = Object.values(os.networkInterfaces()).flatMap((addresses) => addresses ?? []);
    ofInterfaces = new Set(found.map(({ address }) => usualAddress(address)));
    return ofInterfaces;
  }

  function faultOf(host: string): OwnMachine | undefined {
    const address = host.replace(/^\[|\]$/g, '');
    return isIP(address) !== 0 && isOfThisMachine(address) ? new OwnMachine(`${address} ${isOwn}`) : undefined;
  }

  const lookup: LookupFunction = (host, options, done) => {
    dns.lookup(host, options, (failure, found, family) => {
      const addresses = typeof found === 'string' ? [found] : (found ?? []).map(({ address }) => address);
      const own = addresses.find(isOfThisMachine);
      if (failure === null && own !== undefined) done(new OwnMachine(`${host} resolves to ${own}, which ${isOwn}`), []);
      else done(failure, found, family);
    });
  };

  return Object.freeze({
    faultOf,
    lookup,
    connect(address: Parameters<MachineGuard['connect']>[0]) {
      const fault = faultOf(address.host);
      return fault === undefined ? connect({ ...address, lookup }) : new Socket().destroy(fault);
    },
  });
}

const isOwn = 'is the machine of frontdesk, its network link or its cloud';
