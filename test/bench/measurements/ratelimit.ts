/** Measures the cost of a rate-limit decision. The services and a server with an empty handler take turns under load. */
import { once } from 'node:events';
import { mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { isInstalled } from '../../support/programs/installed.ts';
import { accepts } from '../../support/programs/proxy-process.ts';
import { askRedis, createRedisServer } from '../../support/programs/redis-server.ts';
import type { GrpcLoadOrder } from '../clients/grpc-load.ts';
import { type Child, root, startChild } from '../processes/child.ts';
import { writeConfiguration } from '../processes/configuration.ts';
import { benchServer, type Start, type Started, startFrontdesk, startOn } from '../processes/start-servers.ts';
import type { MeasuredRow } from '../table.ts';
import { measureUnderLoad, quantile, takeTurns } from './samples.ts';

interface Row {
  readonly title: string;
  /** The number of live counters; undefined if the server does not count. */
  readonly keys?: number;
  readonly start: Start;
  readonly ratioMax: number;
}

const keyCounts = [1, 10, 1_000_000];
/** Enough for all counters of a row, so that none is evicted. */
const keysMax = 2_000_000;

function serviceRows(where: string, ratioMax: number, env: Readonly<Record<string, string>> = {}): Row[] {
  return keyCounts.map((keys) => ({
    title: `rate-limit call: frontdesk, ${where}, ${keys.toLocaleString('en')} ${keys === 1 ? 'key' : 'keys'}`,
    keys,
    ratioMax,
    start(port, directory) {
      const configDir = writeConfiguration(directory, 'in-process');
      const settings = { RATELIMIT_PORT: String(port), RATELIMIT_KEYS_MAX: String(keysMax), CONFIG_DIR: configDir };
      return startFrontdesk(directory, { ...settings, ...env }, ['ratelimit']);
    },
  }));
}

/** Each server starts several times. Starts differ by a fifth, so the result is the best tenth of all samples. */
const starts = 3;
/** There are many short rounds, so that other work on the machine disturbs all rows equally. */
const rounds = 24;
const durationMs = 80;
const warmUpMs = 20;
const firstWarmUpMs = 2000;

export async function measureRateLimit(directory: string): Promise<MeasuredRow[]> {
  const redis = isInstalled('redis-server') ? await createRedisServer() : undefined;
  if (redis === undefined) process.stderr.write('bench: skipping Redis: redis-server is not on the PATH\n');
  const empty: Row = {
    title: 'rate-limit call: grpc-js with an empty handler',
    start: benchServer('grpc-empty'),
    ratioMax: 1.05,
  };
  const rows = [
    empty,
    ...serviceRows('counters in memory', 1.05),
    ...(redis === undefined ? [] : serviceRows('counters in Redis', 1.18, { REDIS_URL: redis.url })),
  ];
  const samples: number[][] = rows.map(() => []);
  try {
    await redis?.start();
    for (let start = 0; start < starts; start += 1) {
      const more = await measureStart(rows, mkdtempSync(join(directory, 'start-')));
      for (const [index, one] of more.entries()) samples[index]?.push(...one);
      if (redis !== undefined) await askRedis(redis.url, ['FLUSHDB']);
    }
  } finally {
    await redis?.remove();
  }
  const costs = samples.map((one) => quantile(one, 0.1));
  return rows.map(({ title, ratioMax }, index) => {
    const figure = costs[index] ?? Number.NaN;
    return {
      title,
      figure,
      unit: 'CPU us/decision',
      peer: 'grpc-js with an empty handler',
      ratio: figure / (costs[0] ?? Number.NaN),
      target: { ratioMax },
    };
  });
}

interface RowServer extends Started {
  readonly row: Row;
}

/** Starts all services once. Returns samples of the CPU time of a decision in microseconds, by row. */
async function measureStart(rows: readonly Row[], directory: string): Promise<readonly number[][]> {
  const load = startChild([join(root, 'test/bench/clients/grpc-load.ts')]);
  const servers: RowServer[] = [];
  try {
    for (const [index, row] of rows.entries())
      servers.push({ row, ...(await startOn(row.start, directory, `ratelimit-${index}`, unusedPorts)) });
    for (const server of servers) await warmUp(server, load);
    return await takeTurns(servers, rounds, (server) => measure(server, load, warmUpMs, durationMs));
  } finally {
    await Promise.all([...servers.map(({ server }) => server.stop()), load.stop()]);
  }
}

/** The servers call no others. */
const unusedPorts = { upstreamPort: 9, ratelimitPort: 9, authPort: 9 };

async function warmUp(server: RowServer, load: Child): Promise<void> {
  const { row, port } = server;
  await untilListening(port);
  if (row.keys !== undefined && row.keys > 10) {
    const filled = once(load.process, 'message');
    load.process.send({ port, keys: row.keys, isFilling: true, warmUpMs: 0, durationMs: 0 } satisfies GrpcLoadOrder);
    await filled;
  }
  await measure(server, load, firstWarmUpMs, 1);
}

/** Resolves when the port accepts connections. Rejects after half a minute. */
async function untilListening(port: number): Promise<void> {
  const giveUpAtMs = performance.now() + 30_000;
  while (!(await accepts(port))) {
    if (performance.now() > giveUpAtMs) throw new Error(`nothing listens at 127.0.0.1:${port}`);
    await sleep(5);
  }
}

async function measure({ server, port, row }: RowServer, load: Child, warmUpMs: number, durationMs: number) {
  const order: GrpcLoadOrder = { port, keys: row.keys ?? 1, isFilling: false, warmUpMs, durationMs };
  const { cpuMicros, requests } = await measureUnderLoad(server, load, order);
  return cpuMicros / requests;
}
