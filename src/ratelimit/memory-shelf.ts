/** The counters of one algorithm and one length of period: the present period's, and the last one's while they still matter. */
import type { Counter } from './counter-queue.ts';
import { createMemoryWindow, type MemoryWindow } from './memory-window.ts';
import type { Meter } from './meter.ts';
import { windowNumber, windowNumberAfter } from './windows.ts';

export interface MemoryShelf {
  /** Lets go of what has ended; answers the number of the present period. */
  advance(nowMs: number): number;
  size(): number;
  sizeOf(rank: number): number;
  /** A counter of the period before moves into the present one. */
  find(key: string): Counter | undefined;
  add(key: string): Counter;
  promote(counter: Counter, rank: number): void;
  /** Lets go of the oldest of a row, those of the period before first; false when the row is empty. */
  evict(rank: number): boolean;
}

export function createMemoryShelf(seconds: number, { lingers, carry }: Meter, nowMs: number): MemoryShelf {
  let present = createMemoryWindow(seconds, windowNumber(nowMs, seconds));
  let last: MemoryWindow | undefined;

  function begin(number: number): void {
    last = lingers && number === present.number + 1 && present.size() > 0 ? present : undefined;
    present = createMemoryWindow(seconds, number);
  }

  function move(from: MemoryWindow, counter: Counter): Counter {
    from.remove(counter);
    carry(counter);
    return present.add(counter.key, counter);
  }

  return Object.freeze({
    advance(now: number): number {
      const number = windowNumberAfter(present.number, now, seconds);
      if (number !== present.number) begin(number);
      return number;
    },
    size: () => present.size() + (last?.size() ?? 0),
    sizeOf: (rank: number) => present.sizeOf(rank) + (last?.sizeOf(rank) ?? 0),
    find(key: string): Counter | undefined {
      const found = present.find(key);
      if (found !== undefined || last === undefined) return found;
      const earlier = last.find(key);
      return earlier && move(last, earlier);
    },
    add: (key: string) => present.add(key),
    promote: (counter: Counter, rank: number) => present.promote(counter, rank),
    evict(rank: number): boolean {
      const from = last !== undefined && last.sizeOf(rank) > 0 ? last : present;
      if (from.sizeOf(rank) === 0) return false;
      from.evict(rank);
      return true;
    },
  });
}
