/** Load balancing: every address gets the same share, even while others come and go. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { type Candidate, createLoadBalancer } from '../../../src/proxy/cluster/load-balancer.ts';

interface Address extends Candidate {
  activeRequests: number;
  activeUpgrades: number;
}

function addressesOf(count: number): Address[] {
  return Array.from({ length: count }, (_, index) => ({
    origin: `http://${index}`,
    activeRequests: 0,
    activeUpgrades: 0,
    lastPicked: -1 / (index + 1),
  }));
}

const always = () => 'available' as const;

describe('a load balancer', () => {
  it('uses all addresses equally often', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 8 }), fc.integer({ min: 1, max: 5 }), (count, rounds) => {
        const addresses = addressesOf(count);
        const pick = createLoadBalancer<Address>('round_robin');
        const picks = Array.from({ length: count * rounds }, () => pick(addresses, always, []));
        for (const address of addresses) assert.equal(picks.filter((one) => one === address).length, rounds);
      }),
    );
  });

  it('alternates between two addresses that stay while others leave and return', () => {
    const outs = fc.array(fc.uniqueArray(fc.integer({ min: 2, max: 5 })), {
      minLength: 10,
      maxLength: 60,
    });
    fc.assert(
      fc.property(outs, (turns) => {
        const addresses = addressesOf(6);
        const pick = createLoadBalancer<Address>('round_robin');
        const availabilityIn = (out: readonly number[]) => (address: Address) =>
          out.includes(addresses.indexOf(address)) ? 'unavailable' : 'available';
        const picks = turns.map((out) => pick(addresses, availabilityIn(out), []));
        for (const [turn, pick] of picks.entries()) assert.ok(!turns[turn]?.includes(addresses.indexOf(pick)));
        const ofStaying = picks.filter((pick) => addresses.indexOf(pick) < 2);
        for (const [turn, pick] of ofStaying.entries()) assert.notEqual(pick, ofStaying[turn + 1]);
      }),
    );
  });

  it('prefers untried addresses, then available ones, and uses all if none is available', () => {
    const addresses = addressesOf(3);
    const last = addresses.at(-1) as Address;
    const pick = createLoadBalancer<Address>('round_robin');
    for (const other of ['draining', 'full', 'unavailable'] as const) {
      const availabilityOf = (address: Address) => (address === last ? 'available' : other);
      assert.notEqual(pick(addresses, availabilityOf, [last.origin]), last);
      assert.equal(pick(addresses, availabilityOf, []), last);
    }
    const picks = Array.from({ length: 3 }, () => pick(addresses, () => 'unavailable', []));
    assert.equal(new Set(picks).size, 3);
  });

  it('picks the address with the fewest active requests, and equal ones in turn', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(3), { minLength: 1, maxLength: 8 }), (loads) => {
        const addresses = addressesOf(loads.length);
        for (const [index, address] of addresses.entries()) {
          address.activeUpgrades = Math.floor((loads[index] ?? 0) / 2);
          address.activeRequests = (loads[index] ?? 0) - address.activeUpgrades;
        }
        const pick = createLoadBalancer<Address>('least_request');
        const least = addresses.filter((_, index) => loads[index] === Math.min(...loads));
        const picks = Array.from({ length: least.length }, () => pick(addresses, always, []));
        assert.deepEqual(new Set(picks), new Set(least));
      }),
    );
  });
});
