/** Bounds how many password checks run at once, and gives each network its turn in the queue for the others. */
import { availableParallelism } from 'node:os';

/**
 * Each check takes a core for some 50 ms and one of the four threads that also look up names and read files: one core stays
 * free for requests, and one thread for the rest.
 */
export const runningMaxDefault = Math.max(1, Math.min(3, availableParallelism() - 1));

export interface ChecksOptions<Result> {
  readonly runningMax: number;
  readonly waitingMax: number;
  /** In milliseconds. */
  readonly waitMsMax: number;
  /** The result of a check that finds no place, or waits too long. */
  readonly refused: Result;
}

export interface Place {
  readonly network: string;
  /** Where it begins in the queue: 0 is the front. Each place that its network has already adds one. */
  readonly rank: number;
}

export interface Checks<Result> {
  /** Returns `refused` at once when the queue is full of checks with a better place, and later when such checks push it out. */
  readonly run: (place: Place, check: () => Promise<Result>) => Result | Promise<Result>;
}

interface Waiting {
  readonly order: number;
  readonly start: () => void;
  readonly refuse: () => void;
}

/**
 * The second check of a network comes after the first of every other one, so a newcomer passes a flood. Of equals the newest
 * is first: in a flood from many networks the oldest would be a guess as well, and its client the least likely to wait still.
 */
export function createChecks<Result>({
  runningMax,
  waitingMax,
  waitMsMax,
  refused,
}: ChecksOptions<Result>): Checks<Result> {
  const places = new Map<string, number>();
  /** In the order in which they run. */
  const waiting: Waiting[] = [];
  let running = 0;

  function add(network: string, more: 1 | -1): void {
    const count = (places.get(network) ?? 0) + more;
    if (count === 0) places.delete(network);
    else places.set(network, count);
  }

  async function runNow(check: () => Promise<Result>): Promise<Result> {
    running += 1;
    try {
      return await check();
    } finally {
      running -= 1;
      waiting.shift()?.start();
    }
  }

  function enqueue(entry: Waiting): void {
    const behind = waiting.findIndex(({ order }) => order >= entry.order);
    waiting.splice(behind === -1 ? waiting.length : behind, 0, entry);
    if (waiting.length > waitingMax) waiting.pop()?.refuse();
  }

  function runLater(order: number, check: () => Promise<Result>): Promise<Result> {
    return new Promise((resolve) => {
      const settle = (result: Result | Promise<Result>) => {
        clearTimeout(timer);
        resolve(result);
      };
      const entry = { order, start: () => settle(runNow(check)), refuse: () => settle(refused) };
      const timer = setTimeout(() => {
        waiting.splice(waiting.indexOf(entry), 1);
        entry.refuse();
      }, waitMsMax);
      enqueue(entry);
    });
  }

  return Object.freeze({
    run({ network, rank }: Place, check: () => Promise<Result>) {
      const order = rank + (places.get(network) ?? 0);
      const last = waiting.at(-1);
      if (waiting.length >= waitingMax && last !== undefined && last.order < order) return refused;
      add(network, 1);
      return (running < runningMax ? runNow(check) : runLater(order, check)).finally(() => add(network, -1));
    },
  });
}
