/** Splits long work into parts, so that reloading thousands of records does not block the event loop. */
import { setImmediate as nextTurn } from 'node:timers/promises';

/** A computation that yields after each part, so that its caller can pause it. */
export type Work<T> = Generator<undefined, T, undefined>;

/** Runs the work without pausing. Used at the start, when nothing else is waiting. */
export function finish<T>(work: Work<T>): T {
  let step = work.next();
  while (step.done !== true) step = work.next();
  return step.value;
}

/** The time budget for the parts that run in one turn of the event loop. */
const turnMs = 5;

/**
 * Runs the work over several turns of the event loop. Yields to other work before the first part and whenever the time
 * budget is used up.
 */
export async function finishInTurns<T>(work: Work<T>): Promise<T> {
  for (;;) {
    await nextTurn();
    const endMs = performance.now() + turnMs;
    while (performance.now() < endMs) {
      const step = work.next();
      if (step.done === true) return step.value;
    }
  }
}

/** Items per part. A part takes less than a millisecond. */
const partSize = 20;

/** Calls `run` for each item. */
export function* forEachInParts<T>(items: Iterable<T>, run: (item: T) => void): Work<void> {
  let count = 0;
  for (const item of items) {
    run(item);
    count += 1;
    if (count % partSize === 0) yield;
  }
}

/** Like `Array.prototype.map`, in parts. */
export function* mapInParts<T, U>(items: Iterable<T>, map: (item: T) => U): Work<U[]> {
  const mapped: U[] = [];
  yield* forEachInParts(items, (item) => mapped.push(map(item)));
  return mapped;
}

/** Like `Array.prototype.flatMap`, in parts. */
export function* flatMapInParts<T, U>(items: Iterable<T>, map: (item: T) => readonly U[]): Work<U[]> {
  const mapped: U[] = [];
  yield* forEachInParts(items, (item) => mapped.push(...map(item)));
  return mapped;
}

/** Like `Array.prototype.toSorted`, in parts: sorts short runs, then merges them in pairs. */
export function* sortInParts<T>(items: readonly T[], compare: (a: T, b: T) => number): Work<T[]> {
  const runs: T[][] = [];
  for (let start = 0; start < items.length; start += partSize) {
    runs.push(items.slice(start, start + partSize).sort(compare));
    yield;
  }
  return yield* merge(runs, compare);
}

function* merge<T>(runs: readonly T[][], compare: (a: T, b: T) => number): Work<T[]> {
  const [only = []] = runs;
  if (runs.length < 2) return only;
  const half = Math.ceil(runs.length / 2);
  const first = yield* merge(runs.slice(0, half), compare);
  const second = yield* merge(runs.slice(half), compare);
  const merged: T[] = [];
  let next = 0;
  yield* forEachInParts(first, (item) => {
    for (; next < second.length && compare(second[next] as T, item) < 0; next += 1) merged.push(second[next] as T);
    merged.push(item);
  });
  return merged.concat(second.slice(next));
}
