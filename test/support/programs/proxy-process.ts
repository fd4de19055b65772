/** Runs nginx, Caddy and Envoy as processes, with their files in a temporary directory. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { parse } from 'yaml';

/** The recipe is a site. */
export const caddy: ProxyProgram = {
  command: 'caddy',
  configure: (recipe, directory) =>
    ['{', 'admin off', 'auto_https off', `storage file_system ${directory}`, '}', recipe].join('\n'),
  args: (configFile) => ['run', '--config', configFile, '--adapter', 'caddyfile'],
};

/** One thread. The recipe is a complete configuration. */
export const envoy = envoyWith(['--concurrency', '1']);

/** Envoy reads a file without an extension as JSON. */
export function envoyWith(moreArgs: readonly string[]): ProxyProgram {
  return {
    command: 'envoy',
    configure: (recipe) => JSON.stringify(parse(recipe)),
    args: (configFile) => [
      '-c',
      configFile,
      '--use-dynamic-base-id',
      '--disable-hot-restart',
      '--log-level',
      'error',
      ...moreArgs,
    ],
  };
}

const temporaryPaths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'];

/** One process. The recipe is the contents of the `http` block. */
export const nginx = nginxWith(['master_process off;', 'events {}']);

/** @param main the directives outside of the `http` block */
export function nginxWith(main: readonly string[]): ProxyProgram {
  return {
    command: 'nginx',
    configure: (recipe, directory) =>
      [
        'daemon off;',
        'error_log stderr;',
        `pid ${directory}/pid;`,
        ...main,
        'http {',
        'access_log off;',
        ...temporaryPaths.map((name) => `${name}_temp_path ${directory}/${name};`),
        recipe,
        '}',
      ].join('\n'),
    args: (configFile, directory) => ['-e', 'stderr', '-p', directory, '-c', configFile],
  };
}

export interface ProxyProcess {
  readonly pid: number | undefined;
  readonly origin: string;
  readonly port: number;
  /** Ends the process and removes its files. */
  readonly remove: () => Promise<void>;
}

export interface ProxyProgram {
  readonly command: string;
  /** Returns the complete configuration for a recipe and the process's directory. */
  readonly configure: (recipe: string, directory: string) => string;
  readonly args: (configFile: string, directory: string) => readonly string[];
  /** The signal that ends the process and its children. @default SIGKILL */
  readonly stopSignal?: NodeJS.Signals;
}

/** Runs the proxy in the foreground with a minimal environment. Resolves when it accepts connections on `port`. */
export async function startProxy(program: ProxyProgram, recipe: string, port: number): Promise<ProxyProcess> {
  const directory = await mkdtemp(join(tmpdir(), 'frontdesk-proxy-'));
  const configFile = join(directory, 'config');
  await writeFile(configFile, program.configure(recipe, directory));
  const child = spawn(program.command, program.args(configFile, directory), {
    cwd: directory,
    env: { PATH: process.env['PATH'], HOME: directory, XDG_CONFIG_HOME: directory, XDG_DATA_HOME: directory },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  // Ends the child if the test run is interrupted.
  const kill = () => void child.kill(program.stopSignal ?? 'SIGKILL');
  process.once('exit', kill);
  let errorOutput = '';
  child.stderr.on('data', (chunk: Buffer) => {
    errorOutput += chunk;
  });
  const closed = once(child, 'close');

  async function remove(): Promise<void> {
    kill();
    await closed;
    process.removeListener('exit', kill);
    await rm(directory, { recursive: true });
  }

  while (!(await accepts(port))) {
    if (child.exitCode !== null) {
      await remove();
      throw new Error(`${program.command} did not start: ${errorOutput}`);
    }
    await delay(10);
  }
  return { pid: child.pid, origin: `http://127.0.0.1:${port}`, port, remove };
}

/** Whether a server listens on the port. */
export function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}
