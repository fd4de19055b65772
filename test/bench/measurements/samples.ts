/** Takes samples of several servers, and computes their quantiles. */
import { once } from 'node:events';
import type { Child, MeasuredServer } from '../processes/child.ts';

/** Measures each server once in each round, so that other work on the machine disturbs all equally. */
export async function takeTurns<Server, Sample>(
  servers: readonly Server[],
  rounds: number,
  measure: (server: Server) => Promise<Sample>,
): Promise<readonly Sample[][]> {
  const samples: Sample[][] = servers.map(() => []);
  for (let round = 0; round < rounds; round += 1) {
    for (const [index, server] of servers.entries()) samples[index]?.push(await measure(server));
  }
  return samples;
}

/** For a load generator, which sends `began` after `warmUpMs`, and the number of requests `durationMs` later. */
export interface LoadOrder {
  readonly port: number;
  readonly warmUpMs: number;
  readonly durationMs: number;
}

/**
 * The load continues until this order, and then ends after its open requests: a request that is cut off costs the server
 * more than a complete one.
 */
export const stopOrder = 'stop';

/** Returns the number of requests between the two messages, and the CPU time of the server in that period. */
export async function measureUnderLoad(server: MeasuredServer, load: Child, order: LoadOrder) {
  const began = once(load.process, 'message');
  load.process.send(order);
  await began;
  const counted = once(load.process, 'message');
  const before = await server.usage();
  const [{ requests }] = (await counted) as [{ readonly requests: number }];
  const after = await server.usage();
  return { requests, cpuMicros: after.cpuMicros - before.cpuMicros };
}

/** @param share the share of the values below the result */
export function quantile(values: readonly number[], share: number): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length * share)] ?? Number.NaN;
}

export function median(values: readonly number[]): number {
  return quantile(values, 0.5);
}
