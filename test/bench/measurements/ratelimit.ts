/** Measures the cost of a rate-limit decision. The services and a server with an empty handler take turns under load. */
import { on } from 'node:events';
import { mkdtempSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { GrpcLoadOrder, GrpcLoadReport } from '../clients/grpc-load.ts';
import { type Child, root, startChild } from '../processes/child.ts';
import { findRedis } from '../processes/ratelimit-redis.ts';
import {
  createRateLimitRows,
  type RateLimitRow,
  type RateLimitServer,
  startRateLimitServer,
} from '../rows/ratelimit-rows.ts';
import { median, quantile } from './quantile.ts';

export interface RateLimitFigures {
  readonly row: RateLimitRow;
  readonly cpuMicrosPerDecision: number;
  readonly decisionsPerSecond: number;
  readonly rssBytes: number;
}

/** Each server starts several times. Starts differ by a fifth, so the result is the best tenth of all samples. */
const starts = 3;
/** There are many short rounds, so that other work on the machine disturbs all rows equally. */
const rounds = 24;
const durationMs = 80;
const warmUpMs = 20;
const firstWarmUpMs = 2000;

export async function measureRateLimit(directory: string): Promise<RateLimitFigures[]> {
  const redis = await findRedis();
  const rows = createRateLimitRows(redis?.url);
  const samples: Sample[][] = rows.map(() => []);
  try {
    for (let start = 0; start < starts; start += 1) {
      await measureStart(rows, mkdtempSync(join(directory, 'start-')), samples);
      await redis?.clear();
    }
  } finally {
    await redis?.clear();
  }
  return rows.map((row, index) => ({ row, ...leastDisturbed(samples[index] ?? []) }));
}

/** Starts all services once, and adds to the samples of each row. */
async function measureStart(rows: readonly RateLimitRow[], directory: string, samples: Sample[][]): Promise<void> {
  const load = startChild({ args: [join(root, 'test/bench/clients/grpc-load.ts')], env: {} });
  const servers: RateLimitServer[] = [];
  try {
    for (const [index, row] of rows.entries()) servers.push(await startRateLimitServer(row, directory, index));
    for (const server of servers) await warmUp(server, load);
    for (let round = 0; round < rounds; round += 1) {
      for (const [index, server] of servers.entries())
        samples[index]?.push(await measure(server, load, warmUpMs, durationMs));
    }
  } finally {
    await Promise.all([...servers.map(({ child }) => child.stop()), load.stop()]);
  }
}

async function warmUp(server: RateLimitServer, load: Child): Promise<void> {
  await untilListening(server.port);
  const { row, port } = server;
  if (row.keys !== undefined && row.keys > 10) {
    await startLoad(load, { port, keys: row.keys, isFilling: true, warmUpMs: 0, durationMs: 0 }).next();
  }
  await measure(server, load, firstWarmUpMs, 1);
}

/** Resolves when the port accepts connections. Rejects after half a minute. */
async function untilListening(port: number): Promise<void> {
  const giveUpAtMs = performance.now() + 30_000;
  while (!(await isListening(port))) {
    if (performance.now() > giveUpAtMs) throw new Error(`nothing listens at 127.0.0.1:${port}`);
    await sleep(5);
  }
}

function isListening(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1' }, () => resolve(true));
    socket.on('error', () => resolve(false));
    socket.on('connect', () => socket.destroy());
  });
}

type Sample = Omit<RateLimitFigures, 'row'>;

async function measure(
  { child, port, row }: RateLimitServer,
  load: Child,
  warmUpMs: number,
  durationMs: number,
): Promise<Sample> {
  const reports = startLoad(load, { port, keys: row.keys ?? 1, isFilling: false, warmUpMs, durationMs });
  await reports.next();
  const [before, startedAtMs] = [await child.usage(), performance.now()];
  const [ended] = (await reports.next()).value as [GrpcLoadReport];
  const [after, endedAtMs] = [await child.usage(), performance.now()];
  await reports.return?.();
  const requests = ended.event === 'ended' ? ended.requests : 0;
  return {
    cpuMicrosPerDecision: (after.cpuMicros - before.cpuMicros) / requests,
    decisionsPerSecond: (requests * 1000) / (endedAtMs - startedAtMs),
    rssBytes: after.rssBytes,
  };
}

/** Sends the order to the load generator and returns its reports. */
function startLoad(load: Child, order: GrpcLoadOrder): AsyncIterableIterator<unknown> {
  const reports = on(load.process, 'message');
  load.process.send(order);
  return reports;
}

function leastDisturbed(samples: readonly Sample[]): Sample {
  const figures = (name: keyof Sample) => samples.map((sample) => sample[name]);
  return {
    cpuMicrosPerDecision: quantile(figures('cpuMicrosPerDecision'), 0.1),
    decisionsPerSecond: quantile(figures('decisionsPerSecond'), 0.9),
    rssBytes: median(figures('rssBytes')),
  };
}
