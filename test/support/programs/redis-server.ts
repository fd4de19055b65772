/** A Redis server for one test, which the test can kill, freeze and restart. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createClient } from 'redis';
import { endProcess } from './end-process.ts';
import { freePort } from './free-port.ts';

export interface RedisServer {
  readonly url: string;
  readonly port: number;
  /** Starts on the same port without data. Resolves when it accepts connections. */
  start(): Promise<void>;
  kill(): Promise<void>;
  /** Suspends the process: its connections stay open, but it does not respond. */
  freeze(): void;
  thaw(): void;
  /** Kills the process and removes its files. */
  remove(): Promise<void>;
}

/** Further options of redis-server. Options that depend on the port are a function of it. */
type MoreOptions = readonly string[] | ((port: number) => readonly string[]);

const optionsFor = (more: MoreOptions, port: number) => (typeof more === 'function' ? more(port) : more);

/** Reserves a free port but does not start the server. */
export function createRedisServer(more: MoreOptions = []): Promise<RedisServer> {
  return createServer(
    async ({ common, port }) => [...common, ...optionsFor(more, port)],
    'Ready to accept connections',
  );
}

/** A Sentinel that watches a primary, which needs the agreement of two for a failover. */
export function createSentinel(primaryPort: number, more: MoreOptions = []): Promise<RedisServer> {
  async function argumentsOf({ common, directory, port }: Place): Promise<readonly string[]> {
    const file = join(directory, 'sentinel.conf');
    const lines = [
      `sentinel monitor main 127.0.0.1 ${primaryPort} 2`,
      'sentinel down-after-milliseconds main 500',
      'sentinel failover-timeout main 3000',
    ];
    await writeFile(file, lines.join('\n'));
    return [file, '--sentinel', ...common, ...optionsFor(more, port)];
  }
  return createServer(argumentsOf, '+monitor');
}

interface Place {
  readonly common: readonly string[];
  readonly directory: string;
  readonly port: number;
}

async function createServer(
  argumentsOf: (place: Place) => Promise<readonly string[]>,
  startedText: string,
): Promise<RedisServer> {
  const directory = await mkdtemp(join(tmpdir(), 'frontdesk-redis-'));
  const port = await freePort();
  let child: ChildProcess | undefined;

  async function kill(): Promise<void> {
    const running = child;
    child = undefined;
    await endProcess(running, 'SIGKILL');
  }

  return {
    url: `redis://127.0.0.1:${port}`,
    port,
    async start() {
      const common = ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--dir', directory];
      const options = await argumentsOf({ common, directory, port });
      child = spawn('redis-server', options, { stdio: ['ignore', 'pipe', 'ignore'] });
      await waitForOutput(child, startedText);
    },
    kill,
    freeze: () => child?.kill('SIGSTOP'),
    thaw: () => child?.kill('SIGCONT'),
    async remove() {
      await kill();
      await rm(directory, { recursive: true });
    },
  };
}

/** Sends one command on a new connection. */
export async function askRedis(url: string, command: readonly string[]): Promise<unknown> {
  const client = createClient({ url, socket: { reconnectStrategy: false } });
  // The errors reject `connect` and `sendCommand` as well: a primary that becomes a replica closes its connections.
  client.on('error', () => {});
  await client.connect();
  try {
    return await client.sendCommand([...command]);
  } finally {
    client.destroy();
  }
}

/** The keys with this prefix. */
export async function keysOfRedis(url: string, prefix: string): Promise<readonly string[]> {
  const keys = await askRedis(url, ['KEYS', `${prefix}*`]);
  return Array.isArray(keys) ? keys.map(String) : [];
}

function waitForOutput(child: ChildProcess, text: string): Promise<void> {
  return new Promise((resolve, reject) => {
    let output = '';
    child.stdout?.on('data', (chunk: Buffer) => {
      output += chunk;
      if (output.includes(text)) resolve();
    });
    child.once('exit', () => reject(new Error(`redis-server did not start: ${output}`)));
  });
}
