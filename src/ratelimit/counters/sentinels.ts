/** Asks Sentinels which Redis is the primary now. */
import type { RedisAddress, RedisUrl } from '#ratelimit/redis-url';
import type { Connect } from './redis-client.ts';

/** Rejects when no Sentinel names a primary, or the signal is aborted. */
export type FindPrimary = (signal: AbortSignal) => Promise<RedisAddress>;

interface Answer {
  readonly primary: RedisAddress;
  /** Increases with each failover. */
  readonly epoch: number;
}

/**
 * Asks one Sentinel after the other, and passes over those that have missed a failover. Each search begins with the next
 * one, because a Sentinel that the others cannot reach goes on naming a primary that is gone.
 */
export function createFindPrimary(url: RedisUrl, connect: Connect): FindPrimary {
  const { addresses, primaryName = '' } = url;
  let first = 0;
  let newestEpoch = 0;

  async function ask(address: RedisAddress, signal: AbortSignal): Promise<Answer> {
    const sentinel = `the Sentinel at ${address.host}:${address.port}`;
    const reply = await askOnce(connect, { url, address, signal }).catch((cause: Error) => {
      if (/No such master/.test(cause.message))
        throw new UnknownPrimary(`${sentinel} monitors no primary named ${primaryName}`);
      throw new Error(`${sentinel} names no primary: ${cause.message}`, { cause });
    });
    const { ip, port, 'config-epoch': epoch } = Object(reply) as Partial<Record<string, string>>;
    return { primary: { host: String(ip), port: Number(port) }, epoch: Number(epoch) };
  }

  function use({ primary, epoch }: Answer): RedisAddress {
    newestEpoch = epoch;
    return primary;
  }

  return async function findPrimary(signal) {
    const order = [...addresses.slice(first), ...addresses.slice(0, first)];
    first = (first + 1) % addresses.length;
    const errors: unknown[] = [];
    const outdated: Answer[] = [];
    for (const address of order) {
      try {
        const answer = await ask(address, signal);
        if (answer.epoch >= newestEpoch) return use(answer);
        outdated.push(answer);
      } catch (error) {
        errors.push(error);
      }
    }
    // The Sentinels may have been set up anew, so that they count from the beginning.
    const [latest] = outdated.toSorted((a, b) => b.epoch - a.epoch);
    if (latest !== undefined) return use(latest);
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
    return await client.sendCommand(['SENTINEL', 'MASTER', url.primaryName ?? '']);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', stop);
    client.destroy();
  }
}
