/** Ways to wait for an event: polling, a closed stream, a signal from the test, and a log message. */
import type { EventEmitter } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';

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
  let heard = () => {};
  const line = (_fields: object, message = '') => {
    lines.push(message);
    heard();
  };
  const matches = (wanted: string | RegExp) => (text: string) =>
    typeof wanted === 'string' ? text === wanted : wanted.test(text);
  return {
    logger: { info: line, warn: line, error: line },
    /** Resolves when a message has matched, and then forgets all messages so far. */
    async waitFor(wanted: string | RegExp): Promise<void> {
      while (!lines.some(matches(wanted))) {
        await new Promise<void>((resolve) => {
          heard = resolve;
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

export interface Signal {
  readonly give: () => void;
  readonly given: Promise<void>;
}

export function createSignal(): Signal {
  let give = () => {};
  const given = new Promise<void>((resolve) => {
    give = resolve;
  });
  return { give: () => give(), given };
}

/** A handler that never settles, and a promise that resolves when it is first called. */
export function createHangingHandler(): { readonly hang: () => Promise<never>; readonly reached: Promise<void> } {
  const { give, given } = createSignal();
  const hang = () => {
    give();
    return new Promise<never>(() => {});
  };
  return { hang, reached: given };
}
