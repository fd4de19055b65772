/** Runs frontdesk and other programs as processes, and reports their output, their addresses and how they end. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { stripVTControlCharacters } from 'node:util';
import { compileCache } from '../compile-cache.ts';
import { built } from './built.ts';

export interface Ended {
  /** Null if a signal ended the process. */
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface RunOptions {
  /** The environment of the process, apart from PATH. */
  readonly env?: Readonly<Record<string, string>>;
  /** The text on standard input, which is then closed. */
  readonly input?: string;
  /** @default the repository, which contains ./config */
  readonly cwd?: string;
  /** How many files and connections the process may open. @default as many as the tests */
  readonly openFiles?: number;
}

/** A running program. */
export interface Program {
  readonly stdout: () => string;
  /** Resolves when the standard output, without colours, matches. Rejects if the process ends before. */
  readonly waitForOutput: (pattern: RegExp) => Promise<void>;
  readonly signal: (name: NodeJS.Signals) => void;
  /** Stops reading its standard output. */
  readonly stopReading: () => void;
  /** Stops reading the standard output until the process has ended, so that its pipe fills up. */
  readonly pauseReading: () => void;
  readonly ended: Promise<Ended>;
}

export interface Server extends Program {
  /** The addresses that it printed; `''` for modules that it does not run. */
  readonly gatewayUrl: string;
  /** That of TLS_PORT. */
  readonly gatewayTlsUrl: string;
  readonly authUrl: string;
  readonly ratelimitUrl: string;
  readonly ratelimitHttpUrl: string;
  readonly adminUrl: string;
  /** That of the port that redirects to HTTPS. */
  readonly redirectUrl: string;
  /** Sends SIGTERM and waits until the process has ended. */
  readonly stop: () => Promise<Ended>;
}

/** Free ports, a database in memory, and one thread, however many cores the machine has. */
export const scratch = Object.freeze({
  PORT: '0',
  AUTH_PORT: '0',
  RATELIMIT_PORT: '0',
  RATELIMIT_HTTP_PORT: '0',
  DATABASE_URL: 'sqlite::memory:',
  THREADS: '1',
});

/** Resolves when the command ends. Kills it after 15 s. */
export async function runFrontdesk(args: readonly string[], options: RunOptions = {}): Promise<Ended> {
  const { signal, ended } = startNode([main, ...args], options);
  const deadline = setTimeout(() => signal('SIGKILL'), 15_000);
  const result = await ended;
  clearTimeout(deadline);
  return result;
}

/** Resolves when the server has printed that it is ready. Rejects with its output if it ends before. */
export function startServer(args: readonly string[], options: RunOptions = {}): Promise<Server> {
  return startCommand(['serve', ...args], options);
}

/** The same with every module as a separate process. */
export function startSplit(args: readonly string[], options: RunOptions = {}): Promise<Server> {
  return startCommand(['split', ...args], options);
}

/** The same as `startServer` on a terminal with colours, which `script` provides. Its output includes the standard error. */
export function startOnTerminal(args: readonly string[], options: RunOptions = {}): Promise<Server> {
  const env = { ...scratch, TERM: 'xterm-256color', ...options.env };
  // Otherwise the terminal would end its lines with a carriage return.
  const command = `stty -onlcr && exec ${[frontdeskCommand, 'serve', ...args].join(' ')}`;
  return ready(startProcess('script', ['-qec', command, '/dev/null'], { ...options, env }));
}

/** Runs `npm start` in the checkout. */
export function startByNpm(options: RunOptions = {}): Promise<Server> {
  return ready(startProcess('npm', ['start'], { ...options, env: { ...scratch, ...options.env } }));
}

function startCommand(args: readonly string[], options: RunOptions): Promise<Server> {
  return ready(startNode([main, ...args], { ...options, env: { ...scratch, ...options.env } }));
}

async function ready(program: Program): Promise<Server> {
  // The list of addresses ends with an empty line.
  await program.waitForOutput(/^frontdesk .* is ready\.\n(?: {2}.*\n)*\n/m);
  return {
    ...program,
    ...addressesIn(stripVTControlCharacters(program.stdout())),
    stop() {
      program.signal('SIGTERM');
      return program.ended;
    },
  };
}

/** Resolves when all servers are ready. If one does not start, it stops the others and rejects. */
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

/** The commands of `npx frontdesk`. */
export const knownCommands = Object.freeze([
  'serve',
  'split',
  'init',
  'check',
  'explain',
  'crds',
  'limits',
  'users',
  'hash-password',
  'completion',
  'help',
]);

/** Replaces `npx frontdesk` in a shell. */
export const frontdeskCommand = [process.execPath, main].map((word) => `'${word}'`).join(' ');

/** Runs a file, which may be TypeScript, as a process that imports the published build of frontdesk. */
export function startProgram(file: string, options: RunOptions = {}): Program {
  return startNode([file], options);
}

function startNode(args: readonly string[], options: RunOptions): Program {
  const { openFiles } = options;
  if (openFiles === undefined) return startProcess(process.execPath, args, options);
  return startProcess('sh', ['-c', `ulimit -n ${openFiles} && exec "$0" "$@"`, process.execPath, ...args], options);
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
  // Ends the child if the test run is interrupted.
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
    async waitForOutput(pattern) {
      const endedEarly = ended.then(({ code }) => {
        throw new Error(`it ended with ${code} before it printed ${pattern}: ${stdout()}${stderr()}`);
      });
      endedEarly.catch(() => {});
      while (!pattern.test(stripVTControlCharacters(stdout())))
        await Promise.race([once(child.stdout, 'data'), endedEarly]);
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

function addressesIn(banner: string): Omit<Server, keyof Program | 'stop'> {
  const after = (name: string) => new RegExp(`^  ${name} +(\\S+)`, 'm').exec(banner)?.[1] ?? '';
  return {
    gatewayUrl: after('(?:gateway|(?:hotel|car|api)\\S*)'),
    gatewayTlsUrl: after('gateway \\(HTTPS\\)'),
    authUrl: after('auth'),
    ratelimitUrl: after('rate limits'),
    ratelimitHttpUrl: after('rate limits \\(HTTP\\)'),
    adminUrl: after('admin'),
    redirectUrl: after('redirect to HTTPS'),
  };
}
