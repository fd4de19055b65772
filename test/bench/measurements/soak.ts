/** Sends load for a minute while the configuration changes every second. No request may fail. */
import { writeFileSync } from 'node:fs';
import { Agent } from 'node:http';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../../support/programs/free-port.ts';
import { yamlOf } from '../../support/temporary-files.ts';
import { countFailure, demoHeaders, outcomeOf, untilReady } from '../clients/requests.ts';
import { mappingRecord, writeConfiguration } from '../processes/configuration.ts';
import { startBackends, startFrontdesk } from '../processes/start-servers.ts';
import { failureRows, type MeasuredRow } from '../table.ts';

const durationMs = 60_000;
const changeEveryMs = 1000;
const connections = 32;

/** Half of the requests go to an in-process service and half to an HTTP service. All are authenticated and counted. */
export async function soak(directory: string): Promise<MeasuredRow[]> {
  const backends = await startBackends(directory);
  const port = await freePort();
  const configDir = writeConfiguration(join(directory, 'soak'), 'proxy-auth', backends);
  const env = { PORT: String(port), CONFIG_DIR: configDir, LOG_LEVEL: 'warn' };
  const child = startFrontdesk(directory, env, []);
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
    const after = (await child.usage()).rssBytes;
    return [
      { title: 'requests sent', figure: requests, unit: '' },
      { title: 'configurations written', figure: changes, unit: '' },
      { title: 'configurations applied', figure: (await generationOf(port)) - 1, unit: '' },
      { title: 'memory at the start', figure: before / 1e6, unit: 'MB' },
      { title: 'memory at the end', figure: after / 1e6, unit: 'MB' },
      ...failureRows(failures),
    ];
  } finally {
    await Promise.all([child.stop(), backends.stop()]);
  }
}

/** The same two routes, each time with a different name and time-out, next to a varying number of others. */
function recordsOf(change: number, upstreamPort: number): string {
  const timing = { timeout_ms: 3000 + change };
  return yamlOf(
    mappingRecord(`remote-${change % 3}`, '/changing', `127.0.0.1:${upstreamPort}`, timing),
    mappingRecord(`local-${change % 2}`, '/changing-hotels', 'hotel', timing),
    ...Array.from({ length: change % 5 }, (_, index) => mappingRecord(`x${index}`, `/x${index}`, 'car')),
  );
}

async function generationOf(port: number): Promise<number> {
  const response = await fetch(`http://127.0.0.1:${port}/gateway/v0/diag/`, { headers: demoHeaders });
  const { configuration } = (await response.json()) as { configuration: { generation: number } };
  return configuration.generation;
}
