/** How soon `frontdesk serve` with the demo's configuration answers, and what it holds while nothing happens. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from './child.ts';
import { median, untilReady } from './measure.ts';
import { startFrontdesk } from './servers.ts';

export interface StartUp {
  /** From the start of the process to its first 200, with a database to be made. */
  readonly readyMs: number;
  readonly idleRssBytes: number;
}

const starts = 5;
/** Long enough for what V8 and the allocator give back after a start. */
const idleMs = 2000;

export async function measureStartUp(parent: string): Promise<StartUp> {
  const figures: StartUp[] = [];
  for (let start = 0; start < starts; start += 1) {
    const directory = join(parent, `start-${start}`);
    mkdirSync(directory);
    figures.push(await startOnce(directory));
  }
  return {
    readyMs: median(figures.map(({ readyMs }) => readyMs)),
    idleRssBytes: median(figures.map(({ idleRssBytes }) => idleRssBytes)),
  };
}

async function startOnce(directory: string): Promise<StartUp> {
  const port = await freePort();
  const startedAtMs = performance.now();
  const child = startFrontdesk(directory, { PORT: String(port) });
  try {
    await untilReady(port, '/gateway/v0/check_ready', {});
    const readyMs = performance.now() - startedAtMs;
    await sleep(idleMs);
    return { readyMs, idleRssBytes: (await child.usage()).rssBytes };
  } finally {
    await child.stop();
  }
}
