/** PostgreSQL servers for one test: a primary and a standby, which the test can kill and promote. */
import { type ChildProcess, execFile, execFileSync, spawn } from 'node:child_process';
import { chmodSync, chownSync, readdirSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import { eventually } from '../waiting.ts';
import { endProcess } from './end-process.ts';
import { freePort } from './free-port.ts';
import { findProgram } from './installed.ts';

export interface PostgresServer {
  readonly port: number;
  /** Of the database `postgres`, as a user who may do everything. */
  readonly url: string;
  start(): Promise<void>;
  kill(): Promise<void>;
  query(text: string): Promise<readonly Record<string, unknown>[]>;
  /** Kills the process and removes its files. */
  remove(): Promise<void>;
}

/** Where the programs of the server are: Debian has them in no directory of the PATH. */
export function findPostgres(): string | undefined {
  const versions = listOf('/usr/lib/postgresql').toSorted((a, b) => Number(b) - Number(a));
  const ofDebian = versions.map((version) => `/usr/lib/postgresql/${version}/bin`);
  const found = findProgram('postgres');
  const candidates = found === undefined ? ofDebian : [...ofDebian, join(found, '..')];
  return candidates.find((bin) => listOf(bin).includes('pg_basebackup'));
}

function listOf(directory: string): readonly string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}

/** Creates a server without data, which is not running yet. */
export function createPrimary(bin: string): Promise<PostgresServer> {
  return createServer(bin, (directory) => ['initdb', '-D', directory, '-U', 'postgres', '--auth=trust', '--no-sync']);
}

/** Creates a standby that follows a running primary. */
export function createStandby(bin: string, primary: PostgresServer): Promise<PostgresServer> {
  const from = ['-d', primary.url, '--write-recovery-conf', '--checkpoint=fast', '--no-sync'];
  return createServer(bin, (directory) => ['pg_basebackup', '-D', directory, ...from]);
}

async function createServer(
  bin: string,
  commandFor: (directory: string) => readonly [program: string, ...string[]],
): Promise<PostgresServer> {
  const user = userOfServers();
  const parent = await mkdtemp(join(tmpdir(), 'frontdesk-postgres-'));
  if (user !== undefined) chownSync(parent, user.uid, user.gid);
  chmodSync(parent, 0o700);
  const directory = join(parent, 'data');
  const [program, ...options] = commandFor(directory);
  await promisify(execFile)(join(bin, program), options, { ...user, cwd: parent });
  const port = await freePort();
  const url = `postgres://postgres@127.0.0.1:${port}/postgres`;
  let child: ChildProcess | undefined;

  async function kill(): Promise<void> {
    const running = child;
    child = undefined;
    // Ends the sessions at once, without writing their work to disk.
    await endProcess(running, 'SIGQUIT');
  }

  async function query(text: string): Promise<readonly Record<string, unknown>[]> {
    const client = new pg.Client(url);
    await client.connect();
    try {
      return (await client.query(text)).rows;
    } finally {
      await client.end();
    }
  }

  return {
    port,
    url,
    kill,
    query,
    async start() {
      const settings = { port, listen_addresses: '127.0.0.1', unix_socket_directories: '', fsync: 'off' };
      const flags = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
      child = spawn(join(bin, 'postgres'), ['-D', directory, ...flags], { ...user, cwd: parent, stdio: 'ignore' });
      await eventually(() => query('select 1'), 50);
    },
    async remove() {
      await kill();
      await rm(parent, { recursive: true, force: true });
    },
  };
}

/** PostgreSQL refuses to run as root, so that root starts it as the user of the package. */
function userOfServers(): { readonly uid: number; readonly gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const idOf = (flag: string) => Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' }));
  return { uid: idOf('-u'), gid: idOf('-g') };
}
