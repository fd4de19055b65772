/** The queue of password checks: limits how many run concurrently, and is fair to all networks. */
import { availableParallelism } from 'node:os';

/**
 * Each check occupies a core for about 50 ms, and one of the four threads of libuv, which also resolve names and read
 * files. The default leaves one core free for requests and one thread for other work.
 */
export const verificationsMaxDefault = Math.max(1, Math.min(3, availableParallelism() - 1));

export interface CheckQueueOptions<Result> {
  readonly runningMax: number;
  readonly waitingMax: number;
  readonly waitMsMax: number;
  /** The result of a check that is dropped because the queue is full or it has waited too long. */
  readonly refused: Result;
}

export interface Place {
  readonly network: string;
  /** The priority in the queue, lowest first. Every check of the same network that is running or waiting adds one. */
  readonly rank: number;
}

export interface CheckQueue<Result> {
  /** Returns `refused` if the queue is full of higher-priority checks. A waiting check may still be refused later. */
  readonly run: (place: Place, check: () => Promise<Result>) => Result | Promise<Result>;
}

interface Waiting {
  readonly order: number;
  readonly start: () => void;
  readonly refuse: () => void;
}

/**
 * Runs the first check of every network before the second check of any, so that a newcomer overtakes a flood. Among
 * equals, the newest runs first: in a flood from many networks the oldest is probably a guess as well, and its client
 * is the least likely to be still waiting.
 */
export function createCheckQueue<Result>({
  runningMax,
  waitingMax,
  waitMsMax,
  refused,
}: CheckQueueOptions<Result>): CheckQueue<Result> {
  const places = new Map<string, number>();
  /** The queue, next check first. */
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
