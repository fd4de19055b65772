/** Sends load for a minute while the configuration changes every second. No request may fail. */
import { writeFileSync } from 'node:fs';
import { Agent } from 'node:http';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../../support/programs/free-port.ts';
import { countFailure, demoHeaders, outcomeOf, untilReady } from '../clients/requests.ts';
import { writeConfiguration } from '../processes/configuration.ts';
import { startBackends, startFrontdesk } from '../processes/start-servers.ts';

export interface SoakFigures {
  readonly requests: number;
  /** Every outcome other than 200, with its count. */
  readonly failures: ReadonlyMap<string, number>;
  readonly changes: number;
  readonly generations: number;
  /** Memory at the first configuration change and at the end. */
  readonly rssBytes: readonly [number, number];
}

const durationMs = 60_000;
const changeEveryMs = 1000;
const connections = 32;

/** Half of the requests go to an in-process service and half to an HTTP service. All are authenticated and counted. */
export async function soak(directory: string): Promise<SoakFigures> {
  const backends = await startBackends(directory);
  const port = await freePort();
  const configDir = writeConfiguration(join(directory, 'soak'), 'proxy-auth', backends);
  const child = startFrontdesk(directory, { PORT: String(port), LOG_LEVEL: 'warn' }, { configDir });
  const write = (change: number) =>
    writeFileSync(join(configDir, 'services/changing.yaml'), recordsOf(change, backends.upstreamPort));
  try {
    write(0);
    await untilReady(port, '/changing/1024', demoHeaders);
    await untilReady(port, '/changing-hotels', demoHeaders);
    const failures = new Map<string, number>();
    const untilMs = performance.now() + durationMs;
    let requests = 0;
    const agent = new Agent({ keepAlive: true, maxSockets: connections });
    const load = Array.from({ length: connections }, async (_, index) => {
      const path = index % 2 === 0 ? '/changing/1024' : '/changing-hotels';
      while (performance.now() < untilMs) {
        countFailure(failures, await outcomeOf({ port, path, headers: demoHeaders, agent }));
        requests += 1;
      }
    });
    const before = (await child.usage()).rssBytes;
    let changes = 0;
    while (performance.now() < untilMs) {
      changes += 1;
      write(changes);
      await sleep(changeEveryMs);
    }
    await Promise.all(load);
    agent.destroy();
    const generations = await generationOf(port);
    return {
      ...{ requests, failures, changes, generations },
      rssBytes: [before, (await child.usage()).rssBytes],
    };
  } finally {
    await Promise.all([child.stop(), backends.stop()]);
  }
}

/** The same two routes, each time with a different name and time-out, next to a varying number of others. */
function recordsOf(change: number, upstreamPort: number): string {
  const timing = { timeout_ms: 3000 + change };
  const records = [
    { name: `remote-${change % 3}`, prefix: '/changing', service: `127.0.0.1:${upstreamPort}`, ...timing },
    { name: `local-${change % 2}`, prefix: '/changing-hotels', service: 'hotel', ...timing },
    ...Array.from({ length: change % 5 }, (_, index) => ({ name: `x${index}`, prefix: `/x${index}`, service: 'car' })),
  ];
  return records
    .map((record) => JSON.stringify({ apiVersion: 'gateway/v1', kind: 'Mapping', ...record }))
    .join('\n---\n');
}

async function generationOf(port: number): Promise<number> {
  const response = await fetch(`http://127.0.0.1:${port}/gateway/v0/diag/`, { headers: demoHeaders });
  const { configuration } = (await response.json()) as { configuration: { generation: number } };
  return configuration.generation;
}
