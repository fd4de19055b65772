/** How soon `frontdesk serve --demo` answers, and what it holds while nothing happens. */

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../support/programs/free-port.ts';
import type { Child } from './child.ts';
import { median, untilReady } from './measure.ts';
import { startFrontdesk } from './servers.ts';

const starts = 5;

/** From the start of the process to its first 200, each time with a database to be made; in milliseconds. */
export async function measureReady(parent: string): Promise<number> {
  const samples: number[] = [];
  for (let start = 0; start < starts; start += 1) {
    const { child, readyMs } = await startOnce(join(parent, `start-${start}`));
    samples.push(readyMs);
    await child.stop();
  }
  return median(samples);
}

/** V8 gives back what a start has left behind when nothing has happened for some fifteen seconds. */
const idleMs = 25_000;

export interface Idle {
  /** Waits until the process has been idle for long enough. */
  readonly rssBytes: () => Promise<number>;
}

/** Runs beside the other measurements, since it costs them nothing. */
export async function startIdle(parent: string): Promise<Idle> {
  const { child } = await startOnce(join(parent, 'idle'));
  const idleSinceMs = performance.now();
  return {
    async rssBytes() {
      await sleep(Math.max(0, idleMs - (performance.now() - idleSinceMs)));
      const { rssBytes } = await child.usage();
      await child.stop();
      return rssBytes;
    },
  };
}

async function startOnce(directory: string): Promise<{ readonly child: Child; readonly readyMs: number }> {
  mkdirSync(directory);
  const port = await freePort();
  const startedAtMs = performance.now();
  const child = startFrontdesk(directory, { PORT: String(port) });
  await untilReady(port, '/gateway/v0/check_ready', {});
  return { child, readyMs: performance.now() - startedAtMs };
}
