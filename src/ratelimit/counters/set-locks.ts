/** Locks for the sets of a table that threads share, each held for the microseconds of a decision. */

export interface SetLocks {
  /** Runs a function while no other thread holds one of the sets, which may repeat. */
  hold<T>(sets: readonly number[], run: () => T): T;
}

/** Usually, the thread that holds a lock releases it within fewer attempts. If not, the system has paused it. */
const attemptsBeforePauses = 100;
const pauseMs = 0.1;
/** Takes more than half a second. A thread that holds a lock for as long has ended. */
const attemptsMax = 5_000;

/** `words` has a word for each set: the number of the thread that holds it, or 0. Numbers of threads begin at 1. */
export function createSetLocks(words: Int32Array, thread: number): SetLocks {
  function acquire(set: number): void {
    for (let attempt = 1; ; attempt += 1) {
      const holder = Atomics.compareExchange(words, set, 0, thread);
      if (holder === 0) return;
      if (attempt > attemptsMax && Atomics.compareExchange(words, set, holder, thread) === holder) return;
      if (attempt > attemptsBeforePauses) Atomics.wait(words, set, holder, pauseMs);
    }
  }

  function acquireAll(sets: readonly number[]): void {
    // In the same order in all threads, so that no two wait for each other.
    const ordered = sets.length === 1 ? sets : sets.toSorted((a, b) => a - b);
    let last = -1;
    for (const set of ordered) {
      if (set !== last) acquire(set);
      last = set;
    }
  }

  return Object.freeze({
    hold<T>(sets: readonly number[], run: () => T): T {
      try {
        acquireAll(sets);
        return run();
      } finally {
        // If a set repeats, another thread may hold it by now.
        for (const set of sets) Atomics.compareExchange(words, set, thread, 0);
      }
    },
  });
}

/** Releases the locks of a thread that has ended, so that no other has to wait for them. */
export function releaseLocks(words: Int32Array, thread: number): void {
  for (const set of words.keys()) Atomics.compareExchange(words, set, thread, 0);
}
