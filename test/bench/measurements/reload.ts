/** Measures how long a reload of ten thousand mappings blocks the process, by the delay of a timer. */
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../../support/programs/free-port.ts';
import { demoHeaders, untilReady } from '../clients/requests.ts';
import type { Child } from '../processes/child.ts';
import { writeConfiguration } from '../processes/configuration.ts';
import { hotelModules, startFrontdesk } from '../processes/start-servers.ts';
import { median } from './quantile.ts';

/** The median over all rounds of the longest delay in a round, in milliseconds. */
export interface ReloadFigures {
  readonly delayMs: number;
  /** The CPU time of the thread in that delay, which does not depend on other work on the machine. */
  readonly cpuMs: number;
  /** The longest garbage collection, which is part of both. */
  readonly gcMs: number;
}

const mappings = 10_000;
const rounds = 7;
/** Time to release the old configuration after the new one is applied. */
const settleMs = 500;

export async function measureReload(parent: string): Promise<ReloadFigures> {
  const directory = join(parent, 'reload');
  mkdirSync(directory);
  const [port, unusedPort] = [await freePort(), await freePort()];
  const ports = { upstreamPort: unusedPort, ratelimitPort: unusedPort };
  const configDir = writeConfiguration(directory, 'in-process', ports);
  const write = (round: number) => writeFileSync(join(configDir, 'services/many.yaml'), recordsOf(round, unusedPort));
  write(0);
  const timerDelay = new URL('../servers/timer-delay.js', import.meta.url).href;
  const env = { PORT: String(port), LOG_LEVEL: 'error', NODE_OPTIONS: `--import ${timerDelay}` };
  const child = startFrontdesk(directory, env, { modules: hotelModules, configDir });
  const samples: ReloadFigures[] = [];
  try {
    await untilReady(port, '/round-0', demoHeaders);
    for (let round = 1; round <= rounds; round += 1) {
      await sleep(settleMs);
      await longestDelay(child);
      write(round);
      await untilReady(port, `/round-${round}`, demoHeaders);
      await sleep(settleMs);
      samples.push(await longestDelay(child));
    }
  } finally {
    await child.stop();
  }
  const medianOf = (name: keyof ReloadFigures) => median(samples.map((figures) => figures[name]));
  return { delayMs: medianOf('delayMs'), cpuMs: medianOf('cpuMs'), gcMs: medianOf('gcMs') };
}

/** The longest delay since the previous call. */
async function longestDelay(child: Child): Promise<ReloadFigures> {
  child.process.send('timer-delay');
  const [figures] = await once(child.process, 'message');
  return figures as ReloadFigures;
}

/** Records that all differ from those of the previous round. */
function recordsOf(round: number, port: number): string {
  const others = Array.from({ length: mappings - 1 }, (_, index) => ({
    name: `other-${index}`,
    prefix: `/others/${index % 100}/${index}`,
    service: `127.0.0.1:${port}`,
    timeout_ms: 1000 + round,
  }));
  return [{ name: 'round', prefix: `/round-${round}`, service: 'hotel' }, ...others]
    .map((record) => JSON.stringify({ apiVersion: 'gateway/v1', kind: 'Mapping', ...record }))
    .join('\n---\n');
}
