/** Counters without bounds, as plain as possible: what counters in memory have to agree with while nothing is evicted. */
import type { Hit, HitResult } from '#ratelimit';
import {
  algorithms,
  type CounterState,
  wholeSeconds,
  windowNumberAfter,
} from '../../src/ratelimit/counters/algorithms.ts';
import { isDenied, neededOf, type TakeOptions } from '../../src/ratelimit/counters/counters.ts';

interface State extends CounterState {
  readonly name: string;
  readonly windowNumber: number;
  readonly isKnown: boolean;
}

export function createExactCounters(clock: () => number) {
  const states = new Map<string, State>();

  function stateOf(hit: Hit, nowMs: number): State {
    const { stateSeconds, usesLastWindow, roll } = algorithms[hit.algorithm];
    const seconds = stateSeconds(hit);
    const name = `${hit.algorithm} ${seconds} ${hit.key}`;
    const last = states.get(name);
    const windowNumber = windowNumberAfter(last?.windowNumber ?? -2, nowMs, seconds);
    const passed = windowNumber - (last?.windowNumber ?? -2);
    const isKnown = passed === 0 || (passed === 1 && usesLastWindow);
    const state = { name, windowNumber, isKnown, current: 0, previous: 0 };
    if (isKnown) Object.assign(state, { current: last?.current, previous: last?.previous });
    if (isKnown && passed === 1) roll(state);
    return state;
  }

  function takenOf(hit: Hit, available: number, countDenied: boolean): number {
    if (neededOf(hit) <= available) return hit.hits;
    if (countDenied && hit.algorithm === 'fixed_window' && hit.limit > 0) return hit.hits;
    const countsWhatFits = countDenied || hit.shadow || hit.quota !== undefined;
    return countsWhatFits ? Math.min(hit.hits, available) : 0;
  }

  return {
    take(hits: readonly Hit[], { countDenied = false }: TakeOptions = {}): readonly HitResult[] {
      const nowMs = clock();
      const ofRequest = new Map<string, State>();
      const attempts = hits.map((hit) => {
        const algorithm = algorithms[hit.algorithm];
        const own = stateOf(hit, nowMs);
        const state = ofRequest.get(own.name) ?? own;
        ofRequest.set(own.name, state);
        const now = { nowMs, windowNumber: state.windowNumber };
        const available = algorithm.available(state, hit, now);
        const taken = takenOf(hit, available, countDenied);
        algorithm.add(state, taken, hit, now);
        return { hit, algorithm, state, now, taken, over: neededOf(hit) > available };
      });
      if (!countDenied && isDenied(hits, attempts))
        for (const { hit, algorithm, state, now, taken } of attempts)
          if (!hit.shadow && taken > 0) algorithm.add(state, -taken, hit, now);
      return attempts.map(({ hit, algorithm, state, now, taken, over }) => {
        const untilResetMs = over ? algorithm.untilFitsMs : algorithm.untilEmptyMs;
        const remaining = algorithm.available(state, hit, now);
        // A state that is still the initial one is not kept.
        if (state.isKnown || (taken !== 0 && remaining < hit.burst)) states.set(state.name, state);
        return { over, remaining, resetSeconds: wholeSeconds(untilResetMs(state, hit, now)) };
      });
    },
  };
}
