/** Keeps connections away from this machine, for services that only a trusted record may name. */
import dns from 'node:dns';
import { connect, isIP, type LookupFunction, Socket } from 'node:net';
import os from 'node:os';
import { isOwnAddress, messageOf, usualAddress } from '#foundation';

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

  /** While the addresses of this machine cannot be read, each address could be one. `place` is how a message begins. */
  function faultAt(address: string, place: string): OwnMachine | undefined {
    try {
      const isOfThisMachine = isOwnAddress(address) || interfaceAddresses().has(usualAddress(address));
      return isOfThisMachine
        ? new OwnMachine(`${place} is the machine of frontdesk, its network link or its cloud`)
        : undefined;
    } catch (cause) {
      return new OwnMachine(`the addresses of the machine of frontdesk cannot be read: ${messageOf(cause)}`);
    }
  }

  /** They are read once in a second, because that takes as long as a quarter of opening a connection. */
  function interfaceAddresses(): ReadonlySet<string | undefined> {
    const nowMs = clock();
    if (nowMs - readAtMs < 1000) return ofInterfaces;
    const found = Object.values(os.networkInterfaces()).flatMap((addresses) => addresses ?? []);
    readAtMs = nowMs;
    ofInterfaces = new Set(found.map(({ address }) => usualAddress(address)));
    return ofInterfaces;
  }

  function faultOf(host: string): OwnMachine | undefined {
    const address = host.replace(/^\[|\]$/g, '');
    return isIP(address) === 0 ? undefined : faultAt(address, address);
  }

  const lookup: LookupFunction = (host, options, done) => {
    dns.lookup(host, options, (failure, found, family) => {
      const addresses = typeof found === 'string' ? [found] : (found ?? []).map(({ address }) => address);
      const [fault] = addresses.flatMap((address) => faultAt(address, `${host} resolves to ${address}, which`) ?? []);
      if (failure === null && fault !== undefined) done(fault, []);
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
