/** The command line, and other programs, in processes of their own: what they say, where they listen, how they end. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { compileCache } from '../compile-cache.ts';
import { built } from './built.ts';

export interface Ended {
  /** Null when a signal ended it. */
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface RunOptions {
  /** All that it sees of an environment, beside PATH. */
  readonly env?: Readonly<Record<string, string>>;
  /** For its standard input, which ends afterwards. */
  readonly input?: string;
  /** @default the repository, which has ./config */
  readonly cwd?: string;
}

/** A program that runs. */
export interface Program {
  readonly stdout: () => string;
  /** Until its standard output matches. */
  readonly said: (pattern: RegExp) => Promise<void>;
  readonly signal: (name: NodeJS.Signals) => void;
  /** Stops reading its standard output. */
  readonly stopReading: () => void;
  /** Its standard output fills up until it has ended. */
  readonly pauseReading: () => void;
  readonly ended: Promise<Ended>;
}

export interface Server extends Program {
  /** The addresses that it printed; `''` for what does not run in it. */
  readonly gatewayUrl: string;
  readonly authUrl: string;
  readonly ratelimitUrl: string;
  readonly ratelimitHttpUrl: string;
  readonly adminUrl: string;
  /** SIGTERM, and until it has ended. */
  readonly stop: () => Promise<Ended>;
}

/** Free ports and a database that goes with the process. */
export const scratch = Object.freeze({
  PORT: '0',
  AUTH_PORT: '0',
  RATELIMIT_PORT: '0',
  RATELIMIT_HTTP_PORT: '0',
  DATABASE_URL: 'sqlite::memory:',
});

/** Until it ends by itself, or is ended because it does not. */
export async function runFrontdesk(args: readonly string[], options: RunOptions = {}): Promise<Ended> {
  const { signal, ended } = startNode([main, ...args], options);
  const deadline = setTimeout(() => signal('SIGKILL'), 15_000);
  const how = await ended;
  clearTimeout(deadline);
  return how;
}

/** Until it has printed that it is ready. Rejects with what it said when it ends before. */
export function startServer(args: readonly string[], options: RunOptions = {}): Promise<Server> {
  return startCommand(['serve', ...args], options);
}

/** The same for every module as a separate process. */
export function startSplit(args: readonly string[], options: RunOptions = {}): Promise<Server> {
  return startCommand(['split', ...args], options);
}

/** `npm start` in the checkout. */
export function startByNpm(options: RunOptions = {}): Promise<Server> {
  return ready(startProcess('npm', ['start'], { ...options, env: { ...scratch, ...options.env } }));
}

function startCommand(args: readonly string[], options: RunOptions): Promise<Server> {
  return ready(startNode([main, ...args], { ...options, env: { ...scratch, ...options.env } }));
}

async function ready(program: Program): Promise<Server> {
  // An empty line ends the addresses.
  await program.said(/^frontdesk .* is ready\.\n(?: {2}.*\n)*\n/m);
  return {
    ...program,
    ...addressesIn(program.stdout()),
    stop() {
      program.signal('SIGTERM');
      return program.ended;
    },
  };
}

/** All of them, or none: when one does not start, the others are stopped. */
export async function startServers(starting: readonly Promise<Server>[]): Promise<readonly Server[]> {
  const settled = await Promise.allSettled(starting);
  const failure = settled.find((one) => one.status === 'rejected');
  const servers = settled.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
  if (failure === undefined) return servers;
  await Promise.all(servers.map((server) => server.stop()));
  throw failure.reason;
}

const repository = fileURLToPath(new URL('../../..', import.meta.url));
const main = built('main.js');

/** What `npx frontdesk` takes. */
export const knownCommands = Object.freeze(['serve', 'split', 'init', 'check', 'explain', 'users', 'hash-password']);

/** What `npx frontdesk` stands for in a shell. */
export const frontdeskCommand = [process.execPath, main].map((word) => `'${word}'`).join(' ');

/** A file as a separate process, with frontdesk as it is published; it may be TypeScript. */
export function startProgram(file: string, options: RunOptions = {}): Program {
  return startNode([file], options);
}

function startNode(args: readonly string[], options: RunOptions): Program {
  return startProcess(process.execPath, args, options);
}

function startProcess(
  command: string,
  args: readonly string[],
  { env = {}, input, cwd = repository }: RunOptions,
): Program {
  const child = spawn(command, args, {
    cwd,
    env: { PATH: process.env['PATH'], NODE_COMPILE_CACHE: compileCache, ...env },
  });
  // A test run that breaks off takes its children with it.
  const kill = () => void child.kill('SIGKILL');
  process.once('exit', kill);
  const stdout = collect(child.stdout);
  const stderr = collect(child.stderr);
  child.stdin.end(input ?? '');
  const ended = once(child, 'close').then(([code]: (number | null)[]): Ended => {
    process.removeListener('exit', kill);
    return { code: code ?? null, stdout: stdout(), stderr: stderr() };
  });
  return {
    stdout,
    signal: (name) => void child.kill(name),
    stopReading: () => void child.stdout.destroy(),
    pauseReading() {
      child.stdout.pause();
      child.once('exit', () => child.stdout.resume());
    },
    ended,
    async said(pattern) {
      const noText = ended.then(({ code }) => {
        throw new Error(`it ended with ${code} and had not said ${pattern}: ${stdout()}${stderr()}`);
      });
      noText.catch(() => {});
      while (!pattern.test(stdout())) await Promise.race([once(child.stdout, 'data'), noText]);
    },
  };
}

function collect(stream: NodeJS.ReadableStream): () => string {
  let text = '';
  stream.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk;
  });
  return () => text;
}

function addressesIn(
  banner: string,
): Pick<Server, 'gatewayUrl' | 'authUrl' | 'ratelimitUrl' | 'ratelimitHttpUrl' | 'adminUrl'> {
  const after = (name: string) => new RegExp(`^  ${name} +(\\S+)$`, 'm').exec(banner)?.[1] ?? '';
  return {
    gatewayUrl: after('(?:gateway|(?:hotel|car|api)\\S*)'),
    authUrl: after('auth'),
    ratelimitUrl: after('rate limits'),
    ratelimitHttpUrl: after('rate limits \\(HTTP\\)'),
    adminUrl: after('admin'),
  };
}
