/** Creates clients of the `redis` library, each of which connects once. */
import type { RedisClientType } from 'redis';
import type { RedisAddress, RedisCredentials, RedisUrl } from '#ratelimit/redis-url';

export interface RedisTls {
  /** The authorities that may have issued the certificate of Redis (PEM). @default those of Node */
  readonly ca?: string;
  /** The certificate chain that Redis gets (PEM). */
  readonly cert?: string;
  readonly key?: string;
}

export type RedisClient = Pick<RedisClientType, 'connect' | 'destroy' | 'sendCommand' | 'isReady' | 'on'>;

/** Creates a client that connects once. Throws if the files for TLS cannot be read. */
export type Connect = (
  address: RedisAddress,
  options: { readonly credentials: RedisCredentials; readonly database?: number; readonly connectMsMax: number },
) => RedisClient;

export interface ConnectOptions {
  readonly url: Pick<RedisUrl, 'tls'>;
  /** Called for each connection with TLS, so that it uses the files of that time. */
  readonly tls: () => RedisTls;
}

/** Loads the library on demand, because most processes do not use Redis. */
export async function loadConnect({ url, tls }: ConnectOptions): Promise<Connect> {
  const { createClient } = await import('redis');
  return (address, { credentials, database = 0, connectMsMax: connectTimeout }) =>
    createClient({
      ...credentials,
      database,
      // Nothing is sent later than its caller waits: not over a new connection, nor to another server.
      disableOfflineQueue: true,
      maintNotifications: 'disabled',
      // A user with few rights may not send it, and each connection would add an entry to ACL LOG.
      disableClientInfo: true,
      // Together these detect a server that has vanished, even between commands or during a handshake.
      pingInterval: 2_000,
      socket: {
        ...address,
        ...(url.tls && { tls: true as const, ...tls() }),
        connectTimeout,
        socketTimeout: 5_000,
        reconnectStrategy: false,
      },
    });
}
