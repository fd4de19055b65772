/** Ways to wait for an event: polling, a closed stream, a deferred promise, a log message, and a held request. */
import type { EventEmitter } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Context } from 'koa';

/** Half of Mocha's time-out. On a busy machine a process takes many seconds to start. */
const giveUpMs = 30_000;

/**
 * Repeats `check` until it does not throw, and returns its result. After half a minute it rejects with the last error.
 * Use a longer `pauseMs` if the check itself slows down the awaited event.
 */
export async function eventually<T>(check: () => T | Promise<T>, pauseMs = 5): Promise<T> {
  const giveUpAtMs = performance.now() + giveUpMs;
  for (;;) {
    try {
      return await check();
    } catch (error) {
      if (performance.now() > giveUpAtMs) throw error;
      await sleep(pauseMs);
    }
  }
}

export function createLogWatcher() {
  let lines: string[] = [];
  let notify = () => {};
  const line = (_fields: object, message = '') => {
    lines.push(message);
    notify();
  };
  const matches = (expected: string | RegExp) => (text: string) =>
    typeof expected === 'string' ? text === expected : expected.test(text);
  return {
    logger: { info: line, warn: line, error: line },
    /** Resolves when a message has matched, and then forgets all messages so far. */
    async waitFor(expected: string | RegExp): Promise<void> {
      while (!lines.some(matches(expected))) {
        await new Promise<void>((resolve) => {
          notify = resolve;
        });
      }
      lines = [];
    },
  };
}

/** Resolves at `close`. `once` would reject after a reset, which a client gets when the server has unread data. */
export function closeOf(source: EventEmitter): Promise<void> {
  return new Promise((resolve) => {
    source.once('close', () => resolve());
  });
}

export interface Deferred {
  /** Resolves the promise. Ignores its arguments, so that it can be passed as a listener of any event. */
  readonly resolve: () => void;
  readonly promise: Promise<void>;
}

export function createDeferred(): Deferred {
  let resolve = () => {};
  const promise = new Promise<void>((settle) => {
    resolve = settle;
  });
  return { resolve: () => resolve(), promise };
}

/** A middleware that waits until it is released, and then responds with its path. */
export interface HeldMiddleware {
  readonly hold: (ctx: Context) => Promise<void>;
  /** Resolves when `hold` is first called. */
  readonly reached: Promise<void>;
  readonly release: () => void;
}

export function createHeldMiddleware(): HeldMiddleware {
  const [called, released] = [createDeferred(), createDeferred()];
  const hold = async (ctx: Context) => {
    called.resolve();
    await released.promise;
    ctx.body = ctx.path;
  };
  return { hold, reached: called.promise, release: released.resolve };
}
