/** Circuit breakers: limits on the active requests and retries of a cluster. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { type CircuitBreakers, createCircuitBreakers } from '../../../src/proxy/cluster/circuit-breakers.ts';
import { CircuitOpen } from '../../../src/proxy/failures.ts';
import { breakersOf } from '../../support/clusters.ts';

const limits = { maxConnections: 2, maxPendingRequests: 3, maxRequests: 6, maxRetries: 3, maxUpgrades: 2 };

type Load = Parameters<CircuitBreakers['acquire']>[0];

const idle = { activeRequests: 0, activeUpgrades: 0 };

interface Model {
  readonly active: [number, number];
  rejected: number;
}

function acquireFromModel(model: Model, address: 0 | 1): 'acquire' | 'reject' {
  const [one, other] = model.active;
  const waiting = Math.max(0, one - 2) + Math.max(0, other - 2);
  if (one + other < 6 && (model.active[address] < 2 || waiting < 3)) {
    model.active[address] += 1;
    return 'acquire';
  }
  model.rejected += 1;
  return 'reject';
}

function releaseToModel(model: Model, address: 0 | 1): 'release' | 'nothing' {
  if (model.active[address] === 0) return 'nothing';
  model.active[address] -= 1;
  return 'release';
}

const operations = {
  nothing() {},
  acquire: (breakers: CircuitBreakers, load: Load) => breakers.acquire(load),
  release: (breakers: CircuitBreakers, load: Load) => breakers.release(load),
  reject: (breakers: CircuitBreakers, load: Load) => assert.throws(() => breakers.acquire(load), CircuitOpen),
};

describe('circuit breakers', () => {
  it('agree with a simple model of two addresses', () => {
    const step = fc.record({ isAcquire: fc.boolean(), address: fc.constantFrom(0 as const, 1 as const) });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 100 }), (steps) => {
        const breakers = createCircuitBreakers('hotel', limits);
        const loads = [{ ...idle }, { ...idle }] as const;
        const model: Model = { active: [0, 0], rejected: 0 };
        for (const { isAcquire, address } of steps) {
          const operation = isAcquire ? acquireFromModel(model, address) : releaseToModel(model, address);
          if (isAcquire) assert.equal(breakers.rejects(loads[address]), operation === 'reject');
          operations[operation](breakers, loads[address]);
        }
        assert.deepEqual([loads[0].activeRequests, loads[1].activeRequests], model.active);
        assert.equal(breakers.counts.overflows, model.rejected);
      }),
    );
  });

  function checkRetries(maxRetries: number, activeRequests: number, expected: number) {
    it(`allow ${expected} retries for ${activeRequests} active requests and max_retries ${maxRetries}`, () => {
      const breakers = createCircuitBreakers('hotel', breakersOf({ maxRetries }));
      const load = { ...idle };
      for (let count = 0; count < activeRequests; count += 1) breakers.acquire(load);
      let taken = 0;
      while (breakers.acquireRetry() !== undefined) taken += 1;
      assert.equal(taken, expected);
      assert.equal(breakers.counts.activeRetries, expected);
    });
  }

  it('allow another retry as soon as one has ended', () => {
    const { acquireRetry } = createCircuitBreakers('hotel', breakersOf({ maxRetries: 1 }));
    const release = acquireRetry();
    assert.equal(acquireRetry(), undefined);
    release?.();
    assert.notEqual(acquireRetry(), undefined);
  });

  it('require 1 KiB/s of a body while more than half of the slots are in use, and 16 KiB/s while others get none', () => {
    const load = { ...idle };
    const breakers = createCircuitBreakers('hotel', limits);
    const paceMin = breakers.createPaceMin();
    const found: number[] = [];
    for (let active = 1; active <= 2; active += 1) {
      breakers.acquire(load);
      found.push(paceMin());
    }
    const other = { ...idle };
    breakers.acquire(other);
    found.push(paceMin());
    breakers.acquire(load);
    found.push(paceMin());
    breakers.release(load);
    breakers.acquire(other);
    for (let rejected = 0; rejected < 2; rejected += 1) found.push(paceMin());
    assert.deepEqual(found, [0, 0, 1024, 16_384, 1024, 1024]);
    const full = createCircuitBreakers('hotel', breakersOf({ maxRequests: 1 }));
    const fullPaceMin = full.createPaceMin();
    full.acquire({ ...idle });
    assert.equal(fullPaceMin(), 1024);
    assert.throws(() => full.acquire({ ...idle }), CircuitOpen);
    assert.deepEqual([fullPaceMin(), fullPaceMin()], [16_384, 1024]);
  });

  checkRetries(100, 4, 3);
  checkRetries(100, 52, 10);
  checkRetries(5, 100, 5);
  checkRetries(0, 100, 0);
});
