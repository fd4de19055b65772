/** The counters of one window of time, each in the row of those that are as useful. */
import { type Counter, type CounterQueue, createCounterQueue } from './counter-queue.ts';
import type { Tally } from './meter.ts';

/**
 * What is lost with a counter, the least first. Letting go of a counter that was hit once forgets one hit; of one that
 * denies, lets somebody in who knocks right now.
 */
export const rank = Object.freeze({
  hitOnce: 0,
  hitAgain: 1,
  spent: 2,
  denying: 3,
});

export const ranks = Object.freeze([rank.hitOnce, rank.hitAgain, rank.spent, rank.denying]);

/** Of a counter that stands in no row, because it was let go of or never remembered; above all, so that it is promoted to none. */
export const noRank = ranks.length;

export interface MemoryWindow {
  readonly seconds: number;
  readonly number: number;
  size(): number;
  sizeOf(rank: number): number;
  find(key: string): Counter | undefined;
  add(key: string, tally?: Tally): Counter;
  /** To a higher row; a counter that stands in none stays out. */
  promote(counter: Counter, rank: number): void;
  remove(counter: Counter): void;
  /** Lets go of the oldest of a row. */
  evict(rank: number): void;
}

export function createMemoryWindow(seconds: number, number: number): MemoryWindow {
  const counters = new Map<string, Counter>();
  const queues = ranks.map(() => createCounterQueue());
  const queueOf = (index: number): CounterQueue => queues[index] ?? unreachable(index);
  function remove(counter: Counter): void {
    queueOf(counter.rank).remove(counter);
    counters.delete(counter.key);
    counter.rank = noRank;
  }

  return Object.freeze({
    seconds,
    number,
    size: () => counters.size,
    sizeOf: (index: number) => queueOf(index).size(),
    find: (key: string) => counters.get(key),
    add(key: string, { count, before }: Tally = blank): Counter {
      const counter: Counter = {
        key,
        count,
        before,
        rank: rank.hitOnce,
        previous: undefined,
        next: undefined,
      };
      counters.set(key, counter);
      queueOf(rank.hitOnce).append(counter);
      return counter;
    },
    promote(counter: Counter, to: number): void {
      if (to <= counter.rank) return;
      queueOf(counter.rank).remove(counter);
      counter.rank = to;
      queueOf(to).append(counter);
    },
    remove,
    evict(index: number): void {
      const counter = queueOf(index).oldest();
      if (counter !== undefined) remove(counter);
    },
  });
}

const blank: Tally = Object.freeze({ count: 0, before: 0 });

function unreachable(index: number): never {
  throw new RangeError(`no rank ${index}`);
}
