/** Waiting for an event: polling, a close, a signal that a test gives, and a logger that can be waited for. */
import type { EventEmitter } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';

/** Half of what Mocha gives a test: on a busy machine a process takes many seconds to start. */
const giveUpMs = 30_000;

/**
 * What `check` gives once it throws no more; its last error when it still does after half a minute. Between two checks
 * there are `pauseMs`: more than five where a check takes from what it waits for.
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

export function createHeardLog() {
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
    /** What was said until then is forgotten. */
    async said(wanted: string | RegExp): Promise<void> {
      while (!lines.some(matches(wanted))) {
        await new Promise<void>((resolve) => {
          heard = resolve;
        });
      }
      lines = [];
    },
  };
}

/** Its close, also after a reset, for which `once` would reject: a client reads one when the server has not read all. */
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

/** A handler that never answers, and when it was first called. */
export function createStuck(): { readonly stuck: () => Promise<never>; readonly reached: Promise<void> } {
  const { give, given } = createSignal();
  const stuck = () => {
    give();
    return new Promise<never>(() => {});
  };
  return { stuck, reached: given };
}
