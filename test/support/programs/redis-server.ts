/** A Redis server for one test, which the test can kill, freeze and restart. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createClient } from 'redis';
import { freePort } from './free-port.ts';

export interface RedisServer {
  readonly url: string;
  /** Starts on the same port without data. Resolves when it accepts connections. */
  start(): Promise<void>;
  kill(): Promise<void>;
  /** Suspends the process: its connections stay open, but it does not respond. */
  freeze(): void;
  thaw(): void;
  /** Kills the process and removes its files. */
  remove(): Promise<void>;
}

/** Reserves a free port but does not start the server. `more` are further options of redis-server. */
export async function createRedisServer(more: readonly string[] = []): Promise<RedisServer> {
  const directory = await mkdtemp(join(tmpdir(), 'frontdesk-redis-'));
  const port = await freePort();
  let child: ChildProcess | undefined;

  async function kill(): Promise<void> {
    const running = child;
    child = undefined;
    // One that could not start has exited already.
    if (running === undefined || running.exitCode !== null || running.signalCode !== null) return;
    const exited = once(running, 'exit');
    running.kill('SIGKILL');
    await exited;
  }

  return {
    url: `redis://127.0.0.1:${port}`,
    async start() {
      const options = ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--dir', directory, ...more];
      child = spawn('redis-server', options, { stdio: ['ignore', 'pipe', 'ignore'] });
      await waitForOutput(child, 'Ready to accept connections');
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
  const client = createClient({ url });
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
