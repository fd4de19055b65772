/** A thread that counts random requests on shared counters, and adds up the hits that were admitted. */
import { workerData } from 'node:worker_threads';
import { createMemoryCounters, type Hit, type SharedTable } from '#ratelimit';

export interface CountingOrder {
  readonly table: SharedTable;
  readonly thread: number;
  readonly requests: number;
  /** One hit of each, without `hits`. */
  readonly kinds: readonly Hit[];
  /** Admitted hits of each kind, in shared memory. */
  readonly admitted: Int32Array;
}

const { table, thread, requests, kinds, admitted }: CountingOrder = workerData;
const counters = createMemoryCounters({ shared: { table, thread }, clock: () => 1_800_000_000_000 });
const own = kinds.map(() => 0);
let random = thread;

function next(below: number): number {
  random = (Math.imul(random, 1_664_525) + 1_013_904_223) >>> 0;
  return Math.floor((random / 2 ** 32) * below);
}

for (let request = 0; request < requests; request += 1) {
  const chosen = Array.from({ length: 1 + next(3) }, () => next(kinds.length));
  // Gives back only what this thread has counted, so that nothing is given back twice.
  const isReturn = next(8) === 0 && chosen.every((kind) => (own[kind] ?? 0) >= 3);
  const hits = chosen.flatMap((kind) =>
    kinds.slice(kind, kind + 1).map((hit) => ({ ...hit, hits: isReturn ? -1 : 1 })),
  );
  if (counters.take(hits).some(({ over }) => over)) continue;
  for (const kind of chosen) {
    own[kind] = (own[kind] ?? 0) + (isReturn ? -1 : 1);
    Atomics.add(admitted, kind, isReturn ? -1 : 1);
  }
}
