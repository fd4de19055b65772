/** A Redis to count in for the length of a benchmark, if there is one, and nothing left of it afterwards. */
import { createClient } from 'redis';

export interface BenchRedis {
  readonly url: string;
  readonly clear: () => Promise<void>;
}

/** TEST_REDIS_URL, or the last database of the one on this machine; undefined when it does not answer or holds anything. */
export async function findRedis(): Promise<BenchRedis | undefined> {
  const url = process.env['TEST_REDIS_URL'] ?? 'redis://127.0.0.1:6379/15';
  const client = createClient({ url, socket: { reconnectStrategy: false, connectTimeout: 500 } });
  client.on('error', () => {});
  try {
    await client.connect();
    const held = await client.dbSize();
    if (held > 0) process.stderr.write(`bench: left out Redis: ${new URL(url).pathname || url} holds ${held} keys\n`);
    await client.close();
    return held > 0 ? undefined : { url, clear: () => clear(url) };
  } catch {
    process.stderr.write('bench: left out Redis: none answers; name one with TEST_REDIS_URL\n');
    return undefined;
  }
}

async function clear(url: string): Promise<void> {
  const client = await createClient({ url }).connect();
  await client.flushDb();
  await client.close();
}
