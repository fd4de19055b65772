/** Finds an empty Redis database for the benchmark, and empties it again afterwards. */
import { createClient } from 'redis';

export interface BenchRedis {
  readonly url: string;
  readonly clear: () => Promise<void>;
}

/** TEST_REDIS_URL, or the last database of the local Redis. Undefined if it does not respond or is not empty. */
export async function findRedis(): Promise<BenchRedis | undefined> {
  const url = process.env['TEST_REDIS_URL'] ?? 'redis://127.0.0.1:6379/15';
  const client = createClient({ url, socket: { reconnectStrategy: false, connectTimeout: 500 } });
  client.on('error', () => {});
  try {
    await client.connect();
    const keys = await client.dbSize();
    if (keys > 0)
      process.stderr.write(`bench: skipping Redis: database ${new URL(url).pathname || url} has ${keys} keys\n`);
    await client.close();
    return keys > 0 ? undefined : { url, clear: () => clear(url) };
  } catch {
    process.stderr.write('bench: skipping Redis: no server responds; set TEST_REDIS_URL\n');
    return undefined;
  }
}

async function clear(url: string): Promise<void> {
  const client = await createClient({ url }).connect();
  await client.flushDb();
  await client.close();
}
