/** Measures how long a reload of few and of many mappings blocks the process, by the delay of a timer. */
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../../support/programs/free-port.ts';
import { yamlOf } from '../../support/temporary-files.ts';
import { demoHeaders, untilReady } from '../clients/requests.ts';
import type { Child } from '../processes/child.ts';
import { mappingRecord, otherMappings, writeConfiguration } from '../processes/configuration.ts';
import { startFrontdesk } from '../processes/start-servers.ts';
import type { MeasuredRow } from '../table.ts';
import { median } from './samples.ts';

/** The longest delay in a round, in milliseconds. */
interface Sample {
  readonly delayMs: number;
  /** The CPU time of the thread in that delay, which does not depend on other work on the machine. */
  readonly cpuMs: number;
  /** The longest garbage collection, which is part of both. */
  readonly gcMs: number;
}

const rounds = 7;
/** Time to release the old configuration after the new one is applied. */
const settleMs = 500;

/** The first file has 30 KB, and a reload parses it in a thread. */
const sizes = [225, 10_000];

export async function measureReload(directory: string): Promise<MeasuredRow[]> {
  const rows: MeasuredRow[] = [];
  for (const mappings of sizes) rows.push(...(await measureReloadOf(mappings, directory)));
  return rows;
}

async function measureReloadOf(mappings: number, directory: string): Promise<MeasuredRow[]> {
  const port = await freePort();
  const own = join(directory, `reload-${mappings}`);
  const configDir = writeConfiguration(own, 'in-process');
  const write = (round: number) => writeFileSync(join(configDir, 'services/many.yaml'), recordsOf(mappings, round));
  write(0);
  const timerDelay = new URL('../servers/timer-delay.js', import.meta.url).href;
  const env = { PORT: String(port), CONFIG_DIR: configDir, NODE_OPTIONS: `--import ${timerDelay}` };
  const child = startFrontdesk(own, env);
  const samples: Sample[] = [];
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
  const medianOf = (name: keyof Sample) => median(samples.map((sample) => sample[name]));
  const reload = `reload ${mappings} mappings`;
  return [
    {
      title: `${reload}: the longest delay of a timer`,
      figure: medianOf('delayMs'),
      unit: 'ms',
      target: { figureMax: 50 },
    },
    {
      title: `${reload}: the CPU time of the thread in that delay`,
      figure: medianOf('cpuMs'),
      unit: 'CPU ms',
      target: { figureMax: 20 },
    },
    { title: `${reload}: the longest garbage collection`, figure: medianOf('gcMs'), unit: 'ms' },
  ];
}

/** The longest delay since the previous call. */
async function longestDelay(child: Child): Promise<Sample> {
  child.process.send('timer-delay');
  const [figures] = await once(child.process, 'message');
  return figures as Sample;
}

/** Records that all differ from those of the previous round. No server listens on the port of the services. */
function recordsOf(mappings: number, round: number): string {
  const others = otherMappings(mappings - 1, '127.0.0.1:9', { timeout_ms: 1000 + round });
  return yamlOf(mappingRecord('round', `/round-${round}`, 'hotel'), ...others);
}
