/** A minute under load while the configuration changes every second: no request may fail. */
import { writeFileSync } from 'node:fs';
import { Agent, get } from 'node:http';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../support/programs/free-port.ts';
import { writeConfiguration } from './configuration.ts';
import { untilReady } from './measure.ts';
import { startFrontdesk, startParts } from './servers.ts';

export interface SoakFigures {
  readonly requests: number;
  /** Every outcome other than 200, with its count. */
  readonly failures: ReadonlyMap<string, number>;
  readonly swaps: number;
  readonly generations: number;
  /** Memory at the first configuration change and at the end. */
  readonly rssBytes: readonly [number, number];
}

const durationMs = 60_000;
const swapEveryMs = 1000;
const connections = 32;
const headers = {
  authorization: `Basic ${Buffer.from('demo:demo').toString('base64')}`,
  'x-gateway-test-allow': 'bench',
  accept: 'application/json',
};

/** Half of the requests go to an in-process service and half to an HTTP service. All are authenticated and counted. */
export async function soak(directory: string): Promise<SoakFigures> {
  const parts = await startParts(directory);
  const port = await freePort();
  const configDir = writeConfiguration(join(directory, 'soak'), 'proxy-auth', parts);
  const child = startFrontdesk(directory, { PORT: String(port), LOG_LEVEL: 'warn' }, [], { configDir });
  const write = (swap: number) =>
    writeFileSync(join(configDir, 'services/swapped.yaml'), swapped(swap, parts.upstreamPort));
  try {
    write(0);
    await untilReady(port, '/swapped/1024', headers);
    await untilReady(port, '/swapped-hotels', headers);
    const failures = new Map<string, number>();
    const state = { until: performance.now() + durationMs, requests: 0 };
    const agent = new Agent({ keepAlive: true, maxSockets: connections });
    const load = Array.from({ length: connections }, async (_, index) => {
      const path = index % 2 === 0 ? '/swapped/1024' : '/swapped-hotels';
      while (performance.now() < state.until) {
        const outcome = await outcomeOf(port, path, agent);
        state.requests += 1;
        if (outcome !== '200') failures.set(outcome, (failures.get(outcome) ?? 0) + 1);
      }
    });
    const before = (await child.usage()).rssBytes;
    let swaps = 0;
    while (performance.now() < state.until) {
      swaps += 1;
      write(swaps);
      await sleep(swapEveryMs);
    }
    await Promise.all(load);
    agent.destroy();
    const generations = await generationOf(port);
    return {
      requests: state.requests,
      failures,
      swaps,
      generations,
      rssBytes: [before, (await child.usage()).rssBytes],
    };
  } finally {
    await Promise.all([child.stop(), parts.stop()]);
  }
}

/** The same two routes, each time with a different name and time-out, and with a different rewrite without effect. */
function swapped(swap: number, upstreamPort: number): string {
  const timing = { timeout_ms: 3000 + swap };
  const records = [
    { name: `remote-${swap % 3}`, prefix: '/swapped', service: `127.0.0.1:${upstreamPort}`, ...timing },
    { name: `local-${swap % 2}`, prefix: '/swapped-hotels', service: 'hotel', ...timing },
    ...Array.from({ length: swap % 5 }, (_, index) => ({ name: `x${index}`, prefix: `/x${index}`, service: 'car' })),
  ];
  return records
    .map((record) => JSON.stringify({ apiVersion: 'gateway/v1', kind: 'Mapping', ...record }))
    .join('\n---\n');
}

function outcomeOf(port: number, path: string, agent: Agent): Promise<string> {
  return new Promise((resolve) => {
    get({ port, path, headers, agent, host: '127.0.0.1' }, (response) => {
      response.resume().once('close', () => {
        resolve(response.complete ? String(response.statusCode) : 'broken off');
      });
    }).on('error', (error) => resolve(String(error)));
  });
}

async function generationOf(port: number): Promise<number> {
  const response = await fetch(`http://127.0.0.1:${port}/gateway/v0/diag/`, { headers });
  const { configuration } = (await response.json()) as { configuration: { generation: number } };
  return configuration.generation;
}
