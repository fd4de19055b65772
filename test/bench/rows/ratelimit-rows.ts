/** The rows for rate-limit services. Each can start its server. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { freePort } from '../../support/programs/free-port.ts';
import { type Child, root, startChild } from '../processes/child.ts';
import { writeConfiguration } from '../processes/configuration.ts';
import { startFrontdesk } from '../processes/start-servers.ts';

export interface RateLimitRow {
  readonly title: string;
  /** The number of live counters; undefined if the server does not count. */
  readonly keys: number | undefined;
  /** Starts the server. Each row has its own `directory`. */
  readonly start: (port: number, directory: string) => Child;
}

const keyCounts = [1, 10, 1_000_000];
/** Enough for all counters of a row, so that none is evicted. */
const keysMax = 2_000_000;

/** The first row is the server with an empty handler, with which the others are compared. */
export function createRateLimitRows(redisUrl: string | undefined): readonly RateLimitRow[] {
  return [
    { title: 'rate-limit call: grpc-js with an empty handler', keys: undefined, start: startEmpty },
    ...serviceRows('counters in memory', {}),
    ...(redisUrl === undefined ? [] : serviceRows('counters in Redis', { REDIS_URL: redisUrl })),
  ];
}

function startEmpty(port: number): Child {
  return startChild({
    args: [join(root, 'test/bench/servers/grpc-empty.ts')],
    env: { PORT: String(port) },
  });
}

function serviceRows(where: string, env: Readonly<Record<string, string>>): RateLimitRow[] {
  return keyCounts.map((keys) => ({
    title: `rate-limit call: frontdesk, ${where}, ${keys.toLocaleString('en')} ${keys === 1 ? 'key' : 'keys'}`,
    keys,
    start: (port, directory) => startService(port, directory, env),
  }));
}

function startService(port: number, directory: string, env: Readonly<Record<string, string>>): Child {
  const configDir = writeConfiguration(directory, 'in-process', { upstreamPort: port, ratelimitPort: port });
  return startFrontdesk(
    directory,
    { RATELIMIT_PORT: String(port), RATELIMIT_KEYS_MAX: String(keysMax), LOG_LEVEL: 'error', ...env },
    { modules: 'ratelimit', configDir },
  );
}

export interface RateLimitServer {
  readonly row: RateLimitRow;
  readonly child: Child;
  readonly port: number;
}

export async function startRateLimitServer(row: RateLimitRow, parent: string, index: number): Promise<RateLimitServer> {
  const directory = join(parent, `ratelimit-${index}`);
  mkdirSync(directory);
  const port = await freePort();
  return { row, port, child: row.start(port, directory) };
}
