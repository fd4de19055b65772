/** How soon `frontdesk serve --demo` answers, and what it holds while nothing happens and for each mapping; beside bare Koa. */

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../support/programs/free-port.ts';
import { type Child, startChild } from './child.ts';
import { type ConfigurationKind, writeConfiguration } from './configuration.ts';
import { median, untilReady } from './measure.ts';
import { startFrontdesk } from './servers.ts';

export interface StartUpFigures {
  readonly readyMs: Pair;
  readonly idleRssBytes: Pair;
  /** By the number of mappings. */
  readonly mappingBytes: ReadonlyMap<number, number>;
}

interface Pair {
  readonly frontdesk: number;
  readonly koa: number;
}

type Start = (directory: string) => Promise<Started>;

interface Started {
  readonly child: Child;
  readonly readyMs: number;
}

const starts = 5;

/** From the start of the process to its first 200, each time with a database to be made; in milliseconds. */
export async function measureReady(parent: string): Promise<Pair> {
  return { frontdesk: await readyMsOf(startDemo, parent), koa: await readyMsOf(startKoa, parent) };
}

async function readyMsOf(start: Start, parent: string): Promise<number> {
  const samples: number[] = [];
  for (let index = 0; index < starts; index += 1) {
    const { child, readyMs } = await start(join(parent, `${start.name}-${index}`));
    samples.push(readyMs);
    await child.stop();
  }
  return median(samples);
}

/** What the heap has more for each mapping than with ten of them, after a collection; in bytes. */
export async function measureMappings(parent: string): Promise<ReadonlyMap<number, number>> {
  const few = await heapBytesOf('proxy-among-10', parent);
  const perMapping = async (kind: ConfigurationKind, count: number) =>
    [count, ((await heapBytesOf(kind, parent)) - few) / (count - 10)] as const;
  return new Map([await perMapping('proxy-among-1000', 1000), await perMapping('proxy-among-10000', 10_000)]);
}

async function heapBytesOf(kind: ConfigurationKind, parent: string): Promise<number> {
  const directory = join(parent, `heap-${kind}`);
  mkdirSync(directory);
  const port = await freePort();
  const configDir = writeConfiguration(directory, kind, { upstreamPort: port, ratelimitPort: port });
  const env = { PORT: String(port), LOG_LEVEL: 'error', NODE_OPTIONS: '--expose-gc' };
  const child = startFrontdesk(directory, env, ['--only', 'gateway'], { configDir });
  try {
    await untilReady(port, '/gateway/v0/check_ready', {});
    return (await child.usage()).heapBytes ?? Number.NaN;
  } finally {
    await child.stop();
  }
}

/** V8 gives back what a start has left behind when nothing has happened for some fifteen seconds. */
const idleMs = 25_000;

export interface Idle {
  /** Waits until the process has been idle for long enough. */
  readonly rssBytes: () => Promise<Pair>;
}

/** Runs beside the other measurements, since it costs them nothing. */
export async function startIdle(parent: string): Promise<Idle> {
  const frontdesk = await startDemo(join(parent, 'idle'));
  const koa = await startKoa();
  const idleSinceMs = performance.now();
  async function rssBytesOf({ child }: Started): Promise<number> {
    const { rssBytes } = await child.usage();
    await child.stop();
    return rssBytes;
  }
  return {
    async rssBytes() {
      await sleep(Math.max(0, idleMs - (performance.now() - idleSinceMs)));
      return { frontdesk: await rssBytesOf(frontdesk), koa: await rssBytesOf(koa) };
    },
  };
}

async function startDemo(directory: string): Promise<Started> {
  mkdirSync(directory);
  const port = await freePort();
  return await untilStarted(port, '/gateway/v0/check_ready', () => startFrontdesk(directory, { PORT: String(port) }));
}

/** Not a file of TypeScript, whose types would have to be removed at the start. */
const koaProgram = `
  import Koa from 'koa';
  const app = new Koa();
  app.use((ctx) => { ctx.body = { status: 'ok' }; });
  app.listen(Number(process.env.PORT), '127.0.0.1');
`;

async function startKoa(): Promise<Started> {
  const port = await freePort();
  const args = ['--input-type=module', '--eval', koaProgram];
  return await untilStarted(port, '/', () => startChild({ args, env: { PORT: String(port) } }));
}

async function untilStarted(port: number, path: string, start: () => Child): Promise<Started> {
  const startedAtMs = performance.now();
  const child = start();
  await untilReady(port, path, {});
  return { child, readyMs: performance.now() - startedAtMs };
}
