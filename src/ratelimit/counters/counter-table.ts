/** A flat table of counters: a fixed number of slots in memory that threads can share, found by a keyed hash. */
import { randomUUID } from 'node:crypto';
import type { Algorithm } from '#ratelimit/limit';
import {
  algorithms,
  type CounterAlgorithm,
  type CounterState,
  type Now,
  windowNumberAfter,
  windowNumberAt,
} from './algorithms.ts';
import type { Hit } from './counters.ts';
import { createKeyedHash, type KeyHash } from './keyed-hash.ts';

/** The memory of a table, and the seed of its hash, which clients must not know. */
export interface TableMemory {
  readonly buffer: ArrayBuffer | SharedArrayBuffer;
  readonly seed: string;
}

/** A table for several threads, which can be posted to a worker. */
export interface SharedTable extends TableMemory {
  readonly buffer: SharedArrayBuffer;
}

/** A copy of a counter, at the time of a request. */
export interface Counter extends KeyHash, CounterState, Now {
  nowMs: number;
  windowNumber: number;
  algorithm: CounterAlgorithm;
  /** The length of the window in which the state is stored. */
  stateSeconds: number;
  /** The number of the only set that may have a slot for it. */
  set: number;
  /** Where its slot begins, or -1. */
  slot: number;
  /** True if hits of this window, or of the last one if it matters, were counted before this request. */
  isKnown: boolean;
}

/*
 * A set is 16 slots, next to each other. A slot has eight words: the two halves of the hash, when it expires, its
 * usefulness with the time of the last hit, and two doubles for the state. After all sets, there is a word for the lock
 * of each.
 */
const slotsPerSet = 16;
const wordsPerSlot = 8;
const wordsPerSet = slotsPerSet * wordsPerSlot;
const bytesPerSet = (wordsPerSet + 1) * 4;
const lowAt = 0;
const highAt = 1;
const expiryAt = 2;
const usefulnessAt = 3;
/** In doubles. */
const currentAt = 2;
const previousAt = 3;

/** Keys spread unevenly over the sets. With fewer slots, many sets would be full while others have room. */
const slotsPerKey = 1.25;

/** The expiry of a window that ends in 2106 or later, which is the current one as far as the table is concerned. */
const never = 2 ** 32 - 1;

/** The time of the last hit has 24 bits, in seconds, and usefulness has the other eight. */
const times = 2 ** 24;

/** Untouched pages of the memory take no space, so that a large number costs nothing until it is needed. */
export function createTable(keysMax: number, seed: string): TableMemory {
  return { buffer: new ArrayBuffer(bytesFor(keysMax)), seed };
}

export function createSharedTable(keysMax: number): SharedTable {
  return { buffer: new SharedArrayBuffer(bytesFor(keysMax)), seed: randomUUID() };
}

/** With an even number of sets, the buffer consists of whole doubles. */
function bytesFor(keysMax: number): number {
  return 2 * Math.max(1, Math.ceil((slotsPerKey * keysMax) / (2 * slotsPerSet))) * bytesPerSet;
}

function setsOf({ buffer }: TableMemory): number {
  return buffer.byteLength / bytesPerSet;
}

/** Returns the words of the locks. */
export function locksOf(memory: TableMemory): Int32Array {
  return new Int32Array(memory.buffer, setsOf(memory) * wordsPerSet * 4);
}

export function createCounter(): Counter {
  const numbers = { nowMs: 0, windowNumber: 0, current: 0, previous: 0, stateSeconds: 0, low: 0, high: 0, set: 0 };
  return { ...numbers, algorithm: algorithms.fixed_window, slot: -1, isKnown: false };
}

/** Opens a table. If threads share it, a counter must be locked from `load` until after its last `store`. */
export function openTable(memory: TableMemory) {
  const sets = setsOf(memory);
  const words = new Int32Array(memory.buffer);
  const numbers = new Uint32Array(memory.buffer);
  const doubles = new Float64Array(memory.buffer);
  const hashKey = createKeyedHash(memory.seed);

  /** Returns where the slot is at which a search in the set of the counter comes after as many steps. */
  function slotAt({ low, set }: Counter, step: number): number {
    return set * wordsPerSet + ((low + step * wordsPerSlot) & (wordsPerSet - wordsPerSlot));
  }

  function isSlotOf({ low, high }: Counter, slot: number): boolean {
    return words[slot + lowAt] === low && words[slot + highAt] === high;
  }

  function find(counter: Counter): number {
    for (let step = 0; step < slotsPerSet; step += 1) {
      const slot = slotAt(counter, step);
      if (isSlotOf(counter, slot)) return slot;
    }
    return -1;
  }

  /** Returns a free slot or, if there is none, the least useful one and, among equals, the one used longest ago. */
  function findVictim(counter: Counter): number {
    let [victim, least] = [-1, Number.POSITIVE_INFINITY];
    for (let step = 0; step < slotsPerSet; step += 1) {
      const slot = slotAt(counter, step);
      if (isFree(slot, counter)) return slot;
      const worth = worthOf(numbers[slot + usefulnessAt] ?? 0, secondsOf(counter));
      if (worth < least) [victim, least] = [slot, worth];
    }
    return victim;
  }

  function isFree(slot: number, now: Now): boolean {
    return (numbers[slot + expiryAt] ?? 0) <= secondsOf(now);
  }

  function read(counter: Counter): void {
    const { slot, nowMs, stateSeconds, algorithm } = counter;
    const expiry = numbers[slot + expiryAt] ?? 0;
    const last = expiry === never ? counter.windowNumber : expiry / stateSeconds - windowsOf(algorithm);
    counter.windowNumber = windowNumberAfter(last, nowMs, stateSeconds);
    const passed = counter.windowNumber - last;
    counter.isKnown = passed === 0 || (passed === 1 && algorithm.usesLastWindow);
    if (!counter.isKnown) return;
    counter.current = doubles[slot / 2 + currentAt] ?? 0;
    counter.previous = doubles[slot / 2 + previousAt] ?? 0;
    if (passed === 1) algorithm.roll(counter);
  }

  /** While the window of a slot changes, it is free, which is how a thread that ends half-way leaves it. */
  function write(counter: Counter, slot: number, usefulness: number): void {
    const { low, high, windowNumber, stateSeconds, algorithm } = counter;
    const expiry = Math.min(never, (windowNumber + windowsOf(algorithm)) * stateSeconds);
    const isSame = numbers[slot + expiryAt] === expiry && isSlotOf(counter, slot);
    if (!isSame) Atomics.store(numbers, slot + expiryAt, 0);
    words[slot + lowAt] = low;
    words[slot + highAt] = high;
    numbers[slot + usefulnessAt] = usefulness * times + (secondsOf(counter) % times);
    doubles[slot / 2 + currentAt] = counter.current;
    doubles[slot / 2 + previousAt] = counter.previous;
    if (!isSame) Atomics.store(numbers, slot + expiryAt, expiry);
  }

  return Object.freeze({
    /** Makes the object a copy of the hit's counter in its initial state. */
    begin(counter: Counter, hit: Hit, nowMs: number): Counter {
      counter.algorithm = algorithms[hit.algorithm];
      counter.stateSeconds = counter.algorithm.stateSeconds(hit);
      hashKey(counter, kinds[hit.algorithm], counter.stateSeconds, hit.key);
      counter.set = Math.floor(((counter.high >>> 0) * sets) / 2 ** 32);
      counter.nowMs = nowMs;
      counter.windowNumber = windowNumberAt(nowMs, counter.stateSeconds);
      counter.current = 0;
      counter.previous = 0;
      counter.isKnown = false;
      return counter;
    },

    /** Reads the counter, as it is in the current window. */
    load(counter: Counter): void {
      counter.slot = find(counter);
      if (counter.slot !== -1) read(counter);
    },

    /** Writes the counter. Returns true if another one had to give way. */
    store(counter: Counter, usefulness: number): boolean {
      // Another counter of the same request may have taken the slot.
      const hasSlot = counter.slot !== -1 && isSlotOf(counter, counter.slot);
      if (!hasSlot) counter.slot = findVictim(counter);
      const evicts = !hasSlot && !isFree(counter.slot, counter);
      write(counter, counter.slot, usefulness);
      return evicts;
    },
  });
}

const kinds: Readonly<Record<Algorithm, number>> = Object.freeze({
  fixed_window: 0,
  sliding_window: 1,
  token_bucket: 2,
});

/** Returns for how many windows a state matters. */
function windowsOf({ usesLastWindow }: CounterAlgorithm): number {
  return usesLastWindow ? 2 : 1;
}

function secondsOf({ nowMs }: Now): number {
  return Math.floor(nowMs / 1_000);
}

/** Orders slots by their usefulness, and then by the time of their last hit. */
function worthOf(word: number, nowSeconds: number): number {
  const age = (nowSeconds - word) & (times - 1);
  return word - (word % times) + (times - 1 - age);
}
