/** Measures the start-up time and the memory of `frontdesk serve --demo`, and of bare Koa for comparison. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../../support/programs/free-port.ts';
import { untilReady } from '../clients/requests.ts';
import { type Child, startChild } from '../processes/child.ts';
import { writeConfiguration } from '../processes/configuration.ts';
import { startFrontdesk } from '../processes/start-servers.ts';
import type { MeasuredRow } from '../table.ts';
import { median } from './samples.ts';

interface StartedProcess {
  readonly child: Child;
  readonly readyMs: number;
}

const starts = 5;
/** The memory of the start is released after about fifteen idle seconds. */
const idleMs = 25_000;

/** @param measureOthers runs while the processes are idle, because idle processes do not affect other measurements */
export async function measureStartUp(
  directory: string,
  measureOthers: () => Promise<void>,
): Promise<readonly MeasuredRow[]> {
  const ready = [await readyMsOf(startKoa, directory), await readyMsOf(startDemo, directory)];
  const few = await heapBytesOf(10, directory);
  const mappingRows: MeasuredRow[] = [];
  for (const count of [1000, 10_000]) {
    const bytes = ((await heapBytesOf(count, directory)) - few) / (count - 10);
    const title = `memory for each of ${count} mappings`;
    mappingRows.push({ title, figure: bytes / 1e3, unit: 'kB', target: { figureMax: 6 } });
  }
  const idle = [await startKoa(), await startDemo(join(directory, 'idle'))];
  const idleSinceMs = performance.now();
  await measureOthers();
  await sleep(Math.max(0, idleMs - (performance.now() - idleSinceMs)));
  const usages = await Promise.all(idle.map(({ child }) => child.usage()));
  await Promise.all(idle.map(({ child }) => child.stop()));
  const megabytes = usages.map(({ rssBytes }) => rssBytes / 1e6);
  return [
    ...comparedWithKoa('from the start of the process to its first response', 'ms', ready, 700),
    ...comparedWithKoa('memory when idle', 'MB', megabytes, 90),
    ...mappingRows,
  ];
}

function comparedWithKoa(title: string, unit: string, [koa = 0, frontdesk = 0]: readonly number[], figureMax: number) {
  return [
    { title: `${title}: bare Koa`, figure: koa, unit },
    {
      title: `${title}: frontdesk`,
      figure: frontdesk,
      unit,
      peer: 'bare Koa',
      ratio: frontdesk / koa,
      target: { figureMax },
    },
  ];
}

/** Milliseconds from the start of the process to its first 200. Each start creates a new database. */
async function readyMsOf(start: (directory: string) => Promise<StartedProcess>, parent: string): Promise<number> {
  const samples: number[] = [];
  for (let index = 0; index < starts; index += 1) {
    const { child, readyMs } = await start(join(parent, `start-${index}`));
    samples.push(readyMs);
    await child.stop();
  }
  return median(samples);
}

/** The heap of a gateway with this number of mappings, after a garbage collection. */
async function heapBytesOf(mappings: number, parent: string): Promise<number> {
  const directory = join(parent, `heap-${mappings}`);
  const port = await freePort();
  const configDir = writeConfiguration(directory, mappings);
  const env = { PORT: String(port), CONFIG_DIR: configDir, NODE_OPTIONS: '--expose-gc' };
  const child = startFrontdesk(directory, env, ['gateway']);
  try {
    await untilReady(port, '/gateway/v0/check_ready', {});
    return (await child.usage()).heapBytes ?? Number.NaN;
  } finally {
    await child.stop();
  }
}

async function startDemo(directory: string): Promise<StartedProcess> {
  mkdirSync(directory);
  const port = await freePort();
  const env = { PORT: String(port), LOG_LEVEL: 'info' };
  return await untilStarted(port, '/gateway/v0/check_ready', () => startFrontdesk(directory, env, []));
}

/** JavaScript, because removing types at the start would take time. */
const koaProgram = `
  import Koa from 'koa';
  const app = new Koa();
  app.use((ctx) => { ctx.body = { status: 'ok' }; });
  app.listen(Number(process.env.PORT), '127.0.0.1');
`;

async function startKoa(): Promise<StartedProcess> {
  const port = await freePort();
  const args = ['--input-type=module', '--eval', koaProgram];
  return await untilStarted(port, '/', () => startChild(args, { PORT: String(port) }));
}

async function untilStarted(port: number, path: string, start: () => Child): Promise<StartedProcess> {
  const startedAtMs = performance.now();
  const child = start();
  await untilReady(port, path, {});
  return { child, readyMs: performance.now() - startedAtMs };
}
