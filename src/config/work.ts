/** Long work on many records in parts, so that a reload of thousands does not hold the event loop: other work runs in between. */
import { setImmediate as nextTurn } from 'node:timers/promises';

/** May stop after each part. */
export type Work<T> = Generator<undefined, T, undefined>;

/** Runs the work without a stop, as at the start, when nothing else waits. */
export function finish<T>(work: Work<T>): T {
  let step = work.next();
  while (step.done !== true) step = work.next();
  return step.value;
}

/** How long the parts of one turn of the event loop may take together. */
const turnMs = 5;

/** Lets other work run before the first part, and whenever the parts have taken their time. */
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

/** Less than a millisecond of work. */
const partSize = 20;

/** Stops after every few items. */
export function* forEachInParts<T>(items: Iterable<T>, run: (item: T) => void): Work<void> {
  let count = 0;
  for (const item of items) {
    run(item);
    count += 1;
    if (count % partSize === 0) yield;
  }
}

/** As `map`, with stops. */
export function* mapInParts<T, U>(items: Iterable<T>, map: (item: T) => U): Work<U[]> {
  const mapped: U[] = [];
  yield* forEachInParts(items, (item) => mapped.push(map(item)));
  return mapped;
}

/** As `flatMap`, with stops. */
export function* flatMapInParts<T, U>(items: Iterable<T>, map: (item: T) => readonly U[]): Work<U[]> {
  const mapped: U[] = [];
  yield* forEachInParts(items, (item) => mapped.push(...map(item)));
  return mapped;
}

/** As `toSorted`, with stops: sorts short runs, then merges two at a time. */
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
