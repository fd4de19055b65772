/** Runs frontdesk commands in the test's own process, which takes a tenth of the time of a separate process. */
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { mock } from 'node:test';
import { CommanderError } from 'commander';
import { parseSettings, readSettingsFile } from '#config';
import { settingTable } from '#server/product';
import { isTravelModule } from '#travel';
import { createProgram } from '../../../src/cli/program.ts';
import { createFrontdesk, type FrontdeskOptions, type ModuleName } from '../../../src/index.ts';
import type { OpenListeners } from '../desks.ts';
import type { TestServers } from '../serve.ts';
import { type Ended, type RunOptions, scratch } from './frontdesk-process.ts';

/** The most recent command, which may outlive a test that has timed out. */
let last: Promise<unknown> = Promise.resolve();

/** For commands that end on their own. cli/program.test.ts checks that a real process ends in the same ways. */
export function runCommand(args: readonly string[], options: RunOptions = {}): Promise<Ended> {
  const ended = last.then(() => runAlone(args, options));
  last = ended.catch(() => {});
  return ended;
}

/** Commands must not overlap, because each changes the working directory and then restores it. */
async function runAlone(args: readonly string[], options: RunOptions): Promise<Ended> {
  const restore = replaceProcess(options);
  const stdout = mock.method(process.stdout, 'write', () => true).mock;
  const stderr = mock.method(process.stderr, 'write', () => true).mock;
  const textOf = ({ calls }: typeof stdout) => calls.map((call) => String(call.arguments[0])).join('');
  try {
    const error = await failureOf(args);
    return {
      code: error === undefined ? Number(process.exitCode ?? 0) : 1,
      stdout: textOf(stdout),
      stderr: textOf(stderr) + (error === undefined ? '' : `frontdesk: ${error}\n`),
    };
  } finally {
    for (const written of [stdout, stderr]) written.restore();
    restore();
  }
}

/** Returns the error message with which the process would end. Commander prints its own errors. */
async function failureOf(args: readonly string[]): Promise<string | undefined> {
  try {
    await createProgram().parseAsync(args, { from: 'user' });
  } catch (error) {
    if (!(error instanceof CommanderError)) return error instanceof Error ? error.message : String(error);
    process.exitCode = error.exitCode;
  }
  return undefined;
}

/** Replaces the directory, environment and standard input of the process. Returns a function that restores them. */
function replaceProcess({ env = {}, input = '', cwd }: RunOptions): () => void {
  const before = { directory: process.cwd(), env: process.env, exitCode: process.exitCode };
  if (cwd !== undefined) process.chdir(cwd);
  process.env = { PATH: before.env['PATH'], ...env };
  const stdin = mock.getter(process, 'stdin', () => Readable.from([input]) as unknown as typeof process.stdin).mock;
  return () => {
    process.chdir(before.directory);
    process.env = before.env;
    process.exitCode = before.exitCode;
    stdin.restore();
  };
}

/** The options for `serve` in the directory `cwd`, which contains `config`. */
export interface ServeOptions extends Pick<FrontdeskOptions, 'logger'> {
  /** Either empty, or `--only` and its modules. */
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd: string;
}

/** Opens a desk with the settings that `serve` would use, and with free ports by default. */
export async function serveHere(
  servers: TestServers,
  { args = [], env = {}, cwd, ...options }: ServeOptions,
): Promise<OpenListeners> {
  const directory = join(cwd, 'config');
  const {
    configDir: _,
    threads: _threads,
    ...settings
  } = parseSettings(settingTable, {
    ...readSettingsFile(settingTable, directory),
    ...scratch,
    ...env,
  });
  // createFrontdesk also rejects unknown names.
  const only = args[0] === '--only' ? (args[1]?.split(',') as ModuleName[]) : undefined;
  const demo = only?.some(isTravelModule);
  const desk = await createFrontdesk({ ...settings, only, demo, config: directory, ...options });
  servers.later(desk.close);
  return (await desk.listen()) as OpenListeners;
}
