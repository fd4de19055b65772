/** Dear work under a ceiling: a few at once, the same work shared, and no queue. */

export interface Verifications<T> {
  /** The work's result, or that of the same work already running; undefined at once when there is no room. */
  run(key: string, work: () => Promise<T>): Promise<T> | undefined;
}

/** Nothing waits for room: a queue of guesses would only make everybody else wait behind them. */
export function createVerifications<T>(max: number): Verifications<T> {
  const running = new Map<string, Promise<T>>();
  return Object.freeze({
    run(key: string, work: () => Promise<T>) {
      const same = running.get(key);
      if (same !== undefined || running.size >= max) return same;
      const result = work().finally(() => running.delete(key));
      running.set(key, result);
      return result;
    },
  });
}
