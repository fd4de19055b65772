/** Measures the start-up time and the memory of `frontdesk serve --demo`, and of bare Koa for comparison. */

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../../support/programs/free-port.ts';
import { untilReady } from '../clients/requests.ts';
import { type Child, startChild } from '../processes/child.ts';
import { type ConfigurationKind, writeConfiguration } from '../processes/configuration.ts';
import { startFrontdesk } from '../processes/start-servers.ts';
import { median } from './quantile.ts';

export interface StartUpFigures {
  readonly readyMs: Pair;
  readonly idleRssBytes: Pair;
  /** Bytes for each mapping, by the number of mappings. */
  readonly mappingBytes: ReadonlyMap<number, number>;
}

/** The same figure of both servers. */
export interface Pair {
  readonly frontdesk: number;
  readonly koa: number;
}

type Start = (directory: string) => Promise<Started>;

interface Started {
  readonly child: Child;
  readonly readyMs: number;
}

const starts = 5;

/** Milliseconds from the start of the process to its first 200. Each start creates a new database. */
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

/** The growth of the heap for each mapping beyond ten, in bytes after a garbage collection. */
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
  const child = startFrontdesk(directory, env, { modules: 'gateway', configDir });
  try {
    await untilReady(port, '/gateway/v0/check_ready', {});
    return (await child.usage()).heapBytes ?? Number.NaN;
  } finally {
    await child.stop();
  }
}

/** The memory of the start is released after about fifteen idle seconds. */
const idleMs = 25_000;

export interface Idle {
  /** Waits until the processes have been idle for long enough. */
  readonly rssBytes: () => Promise<Pair>;
}

/** Runs during the other measurements, because idle processes do not affect them. */
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

/** JavaScript, because removing types at the start would take time. */
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
