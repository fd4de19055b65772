/** Which of several addresses comes next: each has the same share, although others come and go. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { type Candidate, createLoadBalancer } from '../../../src/proxy/cluster/load-balancer.ts';

interface Place extends Candidate {
  activeRequests: number;
  activeUpgrades: number;
}

function placesOf(count: number): Place[] {
  return Array.from({ length: count }, (_, index) => ({
    origin: `http://${index}`,
    activeRequests: 0,
    activeUpgrades: 0,
    lastPicked: -1 / (index + 1),
  }));
}

const always = () => 'available' as const;

describe('a load balancer', () => {
  it('gives each address the same number of turns', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 8 }), fc.integer({ min: 1, max: 5 }), (count, rounds) => {
        const places = placesOf(count);
        const pick = createLoadBalancer<Place>('round_robin');
        const picks = Array.from({ length: count * rounds }, () => pick(places, always, []));
        for (const place of places) assert.equal(picks.filter((one) => one === place).length, rounds);
      }),
    );
  });

  it('takes turns between two addresses that stay while others leave and return', () => {
    const outs = fc.array(fc.uniqueArray(fc.integer({ min: 2, max: 5 })), { minLength: 10, maxLength: 60 });
    fc.assert(
      fc.property(outs, (turns) => {
        const places = placesOf(6);
        const pick = createLoadBalancer<Place>('round_robin');
        const standingIn = (out: readonly number[]) => (place: Place) =>
          out.includes(places.indexOf(place)) ? 'unavailable' : 'available';
        const picks = turns.map((out) => pick(places, standingIn(out), []));
        for (const [turn, pick] of picks.entries()) assert.ok(!turns[turn]?.includes(places.indexOf(pick)));
        const ofStaying = picks.filter((pick) => places.indexOf(pick) < 2);
        for (const [turn, pick] of ofStaying.entries()) assert.notEqual(pick, ofStaying[turn + 1]);
      }),
    );
  });

  it('prefers untried addresses to available ones and available ones to others, and uses all where none is available', () => {
    const places = placesOf(3);
    const last = places.at(-1) as Place;
    const pick = createLoadBalancer<Place>('round_robin');
    for (const other of ['leaving', 'unavailable'] as const) {
      const standingOf = (place: Place) => (place === last ? 'available' : other);
      assert.notEqual(pick(places, standingOf, [last.origin]), last);
      assert.equal(pick(places, standingOf, []), last);
    }
    const picks = Array.from({ length: 3 }, () => pick(places, () => 'unavailable', []));
    assert.equal(new Set(picks).size, 3);
  });

  it('takes the address with the fewest active requests, and equal ones in turn', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(3), { minLength: 1, maxLength: 8 }), (loads) => {
        const places = placesOf(loads.length);
        for (const [index, place] of places.entries()) {
          place.activeUpgrades = Math.floor((loads[index] ?? 0) / 2);
          place.activeRequests = (loads[index] ?? 0) - place.activeUpgrades;
        }
        const pick = createLoadBalancer<Place>('least_request');
        const least = places.filter((_, index) => loads[index] === Math.min(...loads));
        const picks = Array.from({ length: least.length }, () => pick(places, always, []));
        assert.deepEqual(new Set(picks), new Set(least));
      }),
    );
  });
});
