/** Counters in a row, the oldest first; each step takes the same time however long the row. */
import type { Tally } from './meter.ts';

export interface Counter extends Tally {
  readonly key: string;
  /** Which row it stands in. */
  rank: number;
  previous: Counter | undefined;
  next: Counter | undefined;
}

export interface CounterQueue {
  size(): number;
  oldest(): Counter | undefined;
  append(counter: Counter): void;
  /** The counter must stand in this row. */
  remove(counter: Counter): void;
}

/** A doubly linked list through the counters themselves: a Set would walk over its holes to find its first member. */
export function createCounterQueue(): CounterQueue {
  let size = 0;
  let first: Counter | undefined;
  let last: Counter | undefined;
  return {
    size: () => size,
    oldest: () => first,
    append(counter) {
      counter.previous = last;
      counter.next = undefined;
      if (last === undefined) first = counter;
      else last.next = counter;
      last = counter;
      size += 1;
    },
    remove(counter) {
      const { previous, next } = counter;
      if (previous === undefined) first = next;
      else previous.next = next;
      if (next === undefined) last = previous;
      else next.previous = previous;
      size -= 1;
    },
  };
}
