/** Chooses the primary among several PostgreSQL servers, for each new connection. */
import type { Client, PoolConfig } from 'pg';
import { codeOf, messageOf } from '#foundation';
import type { PostgresUrl } from '../postgres-url.ts';
import { StorageSetupError } from './database.ts';

type ClientClass = typeof Client;

const targetParameter = 'target_session_attrs';

/** Throws a StorageSetupError for what libpq would do with several servers and frontdesk does not. */
export function requireSupported({ parameters }: PostgresUrl): void {
  const name = ['load_balance_hosts', 'hostaddr'].find((each) => parameters.has(each));
  if (name !== undefined) {
    throw new StorageSetupError(
      `the parameter ${name} in DATABASE_URL is not supported. Remove it: frontdesk tries the hosts in their order`,
    );
  }
  const target = parameters.get(targetParameter);
  if (target === null || ['read-write', 'primary'].includes(target)) return;
  throw new StorageSetupError(
    `frontdesk writes to its database. Write ${targetParameter}=read-write in DATABASE_URL, or remove it`,
  );
}

/** Returns the options of a pool whose clients connect to the server that is the primary then. */
export async function serverOptions(url: PostgresUrl, timeoutMs: number): Promise<object> {
  const { servers, parameters } = url;
  const connectionString = servers[0];
  if (servers.length === 1 && !parameters.has(targetParameter)) return { connectionString };
  const { default: pg } = await import('pg');
  return { connectionString, Client: createPrimaryClient(pg.Client, url, timeoutMs) };
}

function createPrimaryClient(PgClient: ClientClass, url: PostgresUrl, timeoutMs: number) {
  const findPrimary = createFindPrimary(PgClient, url, timeoutMs);

  function connectToPrimary(client: Client): Client {
    const connect = client.connect.bind(client) as (done: Done) => void;
    // The pool calls it with a callback, once.
    client.connect = ((done: Done) => {
      findPrimary().then(
        ({ host, port }) => {
          Object.assign(client, { host, port });
          connect(done);
        },
        (error: Error) => done(error),
      );
    }) as Client['connect'];
    return client;
  }

  return function PrimaryClient(config: PoolConfig) {
    return connectToPrimary(new PgClient(config));
  };
}

type Done = (error?: Error | null) => void;

interface Place {
  readonly host: string;
  readonly port: number;
}

/**
 * Asks one server after the other whether it accepts writes, and begins with the one that was the primary last. Together
 * they take less than the time-out of a connection.
 */
function createFindPrimary(PgClient: ClientClass, { servers }: PostgresUrl, timeoutMs: number): () => Promise<Place> {
  const eachMs = Math.max(1, Math.floor((timeoutMs * 0.8) / servers.length));
  let first = 0;

  async function ask(server: string): Promise<Place> {
    const limits = { connectionTimeoutMillis: eachMs, query_timeout: eachMs, application_name: 'frontdesk' };
    const client = new PgClient({ connectionString: server, ...limits });
    // A connection that breaks rejects the query as well.
    client.on('error', () => {});
    try {
      await client.connect();
      const { rows } = await client.query(`select current_setting('transaction_read_only') as setting`);
      if (rows[0]?.setting === 'on') throw new ReadOnlyServer('it is read-only, as a standby is');
      return { host: client.host, port: client.port };
    } finally {
      void client.end().catch(() => {});
    }
  }

  return async function findPrimary() {
    const errors: Error[] = [];
    for (const offset of servers.keys()) {
      const index = (first + offset) % servers.length;
      try {
        const found = await ask(servers[index] ?? '');
        first = index;
        return found;
      } catch (error) {
        errors[index] = error as Error;
      }
    }
    throw noPrimary(servers, errors);
  };
}

/** Its code is that of PostgreSQL for a statement that writes to a standby. */
class ReadOnlyServer extends Error {
  readonly code = '25006';
}

/** Has the code of what an operator can correct at a server, rather than that of a server that is away. */
function noPrimary(servers: readonly string[], errors: readonly Error[]): Error {
  const reasons = servers.map((server, index) => `${new URL(server).host}: ${messageOf(errors[index])}`);
  const [cause] = errors.toSorted((a, b) => rankOf(a) - rankOf(b));
  const message = `no server accepts writes (${reasons.join('; ')})`;
  return Object.assign(new Error(message, { cause }), { code: codeOf(cause) || 'ECONNREFUSED' });
}

/** What a server rejects comes first, then a standby, then what is away. */
function rankOf(error: Error): number {
  if (error instanceof ReadOnlyServer) return 1;
  return /^[0-9A-Z]{5}$/.test(codeOf(error)) ? 0 : 2;
}
