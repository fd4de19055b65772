/** Lets requests run between the parts of long work, such as a reload of thousands of records. */
import { setImmediate } from 'node:timers/promises';

/** Resolves when the event loop has handled what was waiting. */
export async function nextTurn(): Promise<void> {
  await setImmediate();
}

/** Making the routes of so many mappings takes a few milliseconds. */
const itemsPerTurn = 100;

/** An object of a cluster may have thousands of records, so that a hundred of them would take seconds. */
const turnMs = 10;

/** Like `Array.prototype.map`, for items that take long. */
export async function mapInTurns<T, U>(items: readonly T[], map: (item: T, index: number) => U): Promise<U[]> {
  const mapped: U[] = [];
  let startedAtMs = performance.now();
  for (const [index, item] of items.entries()) {
    if (index % itemsPerTurn === 0 || performance.now() - startedAtMs > turnMs) {
      await nextTurn();
      startedAtMs = performance.now();
    }
    mapped.push(map(item, index));
  }
  return mapped;
}
