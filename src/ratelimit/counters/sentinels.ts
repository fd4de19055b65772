/** Asks Sentinels which Redis is the primary now. */
import type { RedisAddress, RedisUrl } from '#ratelimit/redis-url';
import type { Connect } from './redis-client.ts';

/** Rejects when no Sentinel names a primary, or the signal is aborted. */
export type FindPrimary = (signal: AbortSignal) => Promise<RedisAddress>;

/**
 * Asks one Sentinel after the other. Each search begins with the next one, because a Sentinel that the others cannot
 * reach goes on naming a primary that is gone.
 */
export function createFindPrimary(url: RedisUrl, connect: Connect): FindPrimary {
  const { addresses, primaryName = '' } = url;
  let first = 0;

  async function ask(address: RedisAddress, signal: AbortSignal): Promise<RedisAddress> {
    const sentinel = `the Sentinel at ${address.host}:${address.port}`;
    const reply = await askOnce(connect, { url, address, signal }).catch((cause: Error) => {
      throw new Error(`${sentinel} names no primary: ${cause.message}`, { cause });
    });
    if (!Array.isArray(reply)) throw new UnknownPrimary(`${sentinel} monitors no primary named ${primaryName}`);
    const [host, port] = reply.map(String);
    return { host: host ?? '', port: Number(port) };
  }

  return async function findPrimary(signal) {
    const order = [...addresses.slice(first), ...addresses.slice(0, first)];
    first = (first + 1) % addresses.length;
    const errors: unknown[] = [];
    for (const address of order) {
      try {
        return await ask(address, signal);
      } catch (error) {
        errors.push(error);
      }
    }
    // What an operator can correct, rather than that some Sentinels are away.
    throw errors.find((error) => error instanceof UnknownPrimary) ?? errors.at(-1);
  };
}

class UnknownPrimary extends Error {}

/** How long each Sentinel may take to accept the connection, and then to respond. */
const sentinelMsMax = 500;

interface Asking {
  readonly url: RedisUrl;
  readonly address: RedisAddress;
  readonly signal: AbortSignal;
}

async function askOnce(connect: Connect, { url, address, signal }: Asking): Promise<unknown> {
  const client = connect(address, { credentials: url.sentinelCredentials, connectMsMax: sentinelMsMax });
  // The errors reject `connect` and `sendCommand` as well.
  client.on('error', () => {});
  const stop = () => client.destroy();
  let timer: NodeJS.Timeout | undefined;
  signal.addEventListener('abort', stop);
  try {
    await client.connect();
    timer = setTimeout(stop, sentinelMsMax);
    return await client.sendCommand(['SENTINEL', 'get-master-addr-by-name', url.primaryName ?? '']);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', stop);
    client.destroy();
  }
}
