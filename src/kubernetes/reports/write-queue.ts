/** Runs writes to the API server a few at a time, each key once, and waits longer while the server cannot take them. */
import { setTimeout as delay } from 'node:timers/promises';
import { backoffMs } from '../backoff.ts';

/** Not `done` if the server could not take the write now. It may say after what time it can. */
export type WriteOutcome = 'done' | { readonly retryAfterMs: number | undefined };

export interface WriteQueue {
  /** Replaces a waiting write with the same key, so that at most one waits for each object. */
  readonly add: (key: string, write: () => Promise<WriteOutcome>) => void;
  /** Drops a waiting write, and does not repeat one that has begun. */
  readonly drop: (key: string) => void;
  readonly waiting: () => number;
  /** Drops the waiting writes, and waits for those that have begun. */
  readonly close: () => Promise<void>;
}

export interface WriteQueueOptions {
  /** How many writes run at once. @default 5 */
  readonly atOnceMax?: number;
  /** How long each of them pauses before the next one, in milliseconds. @default 100 */
  readonly pauseMs?: number;
  /** The first delay while the server cannot take writes, in milliseconds. Doubles up to a minute. @default 1_000 */
  readonly firstBackoffMs?: number;
  /** From 0 to 1. @default Math.random */
  readonly random?: () => number;
}

const backoffMsMax = 60_000;

export function createWriteQueue(options: WriteQueueOptions = {}): WriteQueue {
  const { atOnceMax = 5, pauseMs = 100, firstBackoffMs = 1_000, random = Math.random } = options;
  const waiting = new Map<string, () => Promise<WriteOutcome>>();
  /** Whether each write in flight is put back if it fails. */
  const running = new Map<string, boolean>();
  const workers = new Set<Promise<void>>();
  const closing = new AbortController();
  let failuresInARow = 0;
  let pausedUntilMs = 0;

  const pause = (ms: number) => delay(ms, undefined, { signal: closing.signal, ref: false }).catch(() => {});

  /** The oldest write whose key has none in flight: two of the same key could arrive in the wrong order. */
  function next(): readonly [string, () => Promise<WriteOutcome>] | undefined {
    for (const entry of waiting) if (!running.has(entry[0])) return entry;
    return undefined;
  }

  async function work(): Promise<void> {
    for (let found = next(); found !== undefined && !closing.signal.aborted; found = next()) {
      const pausedMs = pausedUntilMs - performance.now();
      if (pausedMs > 0) await pause(pausedMs);
      else await run(...found);
    }
  }

  async function run(key: string, write: () => Promise<WriteOutcome>): Promise<void> {
    waiting.delete(key);
    running.set(key, true);
    const outcome = await write();
    const isWanted = running.get(key) && !waiting.has(key);
    running.delete(key);
    if (outcome === 'done') failuresInARow = 0;
    else {
      if (isWanted && !closing.signal.aborted) waiting.set(key, write);
      backOff(outcome.retryAfterMs);
    }
    await pause(pauseMs);
  }

  /** The writes that were in flight together count as one failure. */
  function backOff(retryAfterMs: number | undefined): void {
    if (performance.now() < pausedUntilMs) return;
    const delayMs = backoffMs([firstBackoffMs, backoffMsMax], failuresInARow, random);
    failuresInARow += 1;
    pausedUntilMs = performance.now() + Math.max(retryAfterMs ?? 0, delayMs);
  }

  function start(): void {
    if (workers.size >= atOnceMax || closing.signal.aborted) return;
    const worker = work().finally(() => {
      workers.delete(worker);
      if (next() !== undefined) start();
    });
    workers.add(worker);
  }

  return Object.freeze({
    add(key: string, write: () => Promise<WriteOutcome>) {
      if (closing.signal.aborted) return;
      waiting.set(key, write);
      start();
    },
    drop(key: string) {
      waiting.delete(key);
      if (running.has(key)) running.set(key, false);
    },
    waiting: () => waiting.size,
    async close() {
      closing.abort();
      waiting.clear();
      await Promise.all(workers);
    },
  });
}
