/** Outlier detection: ejects failing addresses for longer each time, but never all of them. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { createOutlierState, isEjected, type OutlierState, recordOutcome } from '../../../src/proxy/cluster/health.ts';

const rule = { consecutive5xx: 3, baseEjectionTimeMs: 1000, maxEjectionPercent: 50 };

function statesOf(count: number): [OutlierState, ...OutlierState[]] {
  return Array.from({ length: count }, createOutlierState) as [OutlierState, ...OutlierState[]];
}

/** Records `times` failures and returns whether they ejected the address. */
function fail(state: OutlierState, all: readonly OutlierState[], nowMs: number, times = rule.consecutive5xx): boolean {
  const judged = Array.from({ length: times }, () => recordOutcome(rule, state, all, true, nowMs));
  return judged.includes(true);
}

interface Model {
  row: number;
  times: number;
  until: number;
}

function judgeModel(model: readonly Model[], index: number, hasFailed: boolean, nowMs: number): void {
  const one = model[index] as Model;
  if (one.until > nowMs) return;
  one.row = hasFailed ? one.row + 1 : 0;
  if (one.row < 3 || model.filter(({ until }) => until > nowMs).length >= 2) return;
  for (let passedMs = one.until + 1000; one.times > 0 && passedMs <= nowMs; passedMs += 1000) one.times -= 1;
  one.times += 1;
  one.row = 0;
  one.until = nowMs + 1000 * one.times;
}

describe('outlier ejection', () => {
  it('lasts longer each time, up to five minutes', () => {
    const all = statesOf(2);
    const [state] = all;
    const lasts: number[] = [];
    let nowMs = 0;
    for (let time = 0; time < 302; time += 1) {
      assert.equal(fail(state, all, nowMs), true);
      lasts.push(state.ejectedUntilMs - nowMs);
      nowMs = state.ejectedUntilMs;
    }
    assert.deepEqual(lasts.slice(0, 3), [1000, 2000, 3000]);
    assert.deepEqual(lasts.slice(-3), [300_000, 300_000, 300_000]);
  });

  it('never affects the only address, and is off with a threshold or percentage of 0', () => {
    const [alone] = statesOf(1);
    assert.equal(fail(alone, [alone], 0, 10), false);
    for (const off of [{ consecutive5xx: 0 }, { maxEjectionPercent: 0 }]) {
      const all = statesOf(3);
      for (let time = 0; time < 10; time += 1)
        assert.equal(recordOutcome({ ...rule, ...off }, all[0], all, true, 0), false);
    }
  });

  it('affects one of two addresses, and at most the configured percentage of more', () => {
    for (const [count, percent, most] of [
      [2, 10, 1],
      [2, 100, 1],
      [3, 50, 1],
      [4, 50, 2],
      [10, 35, 3],
      [10, 100, 9],
    ] as const) {
      const all = statesOf(count);
      for (const state of all)
        for (let time = 0; time < 3; time += 1)
          recordOutcome({ ...rule, maxEjectionPercent: percent }, state, all, true, 0);
      assert.equal(all.filter((state) => isEjected(state, 0)).length, most, `${count} addresses, ${percent} %`);
    }
  });

  it('agrees with a simple model', () => {
    const step = fc.record({
      index: fc.nat(3),
      hasFailed: fc.boolean(),
      waitMs: fc.constantFrom(0, 0, 0, 400, 1000, 5000),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
        const all = statesOf(4);
        const model = all.map(() => ({ row: 0, times: 0, until: Number.NEGATIVE_INFINITY }));
        let nowMs = 0;
        for (const { index, hasFailed, waitMs } of steps) {
          nowMs += waitMs;
          recordOutcome(rule, all[index] as OutlierState, all, hasFailed, nowMs);
          judgeModel(model, index, hasFailed, nowMs);
        }
        assert.deepEqual(
          all.map((state) => isEjected(state, nowMs)),
          model.map(({ until }) => until > nowMs),
        );
        assert.deepEqual(
          all.map(({ ejectedUntilMs }) => ejectedUntilMs),
          model.map(({ until }) => until),
        );
      }),
    );
  });
});
