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

/** Runs each part in a turn of the event loop of its own. */
export async function finishInTurns<T>(work: Work<T>): Promise<T> {
  let step = work.next();
  while (step.done !== true) {
    await nextTurn();
    step = work.next();
  }
  return step.value;
}

/** Some milliseconds of work, or fewer. */
const partSize = 250;

/** Stops after every few hundred items. */
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
