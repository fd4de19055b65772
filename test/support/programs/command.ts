/** Commands of frontdesk in the test's own process, where they need a tenth of the time that a process takes to start. */
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { mock } from 'node:test';
import { CommanderError } from 'commander';
import { isDemoModule, parseSettings, readSettingsFile } from '#config';
import { createProgram } from '../../../src/cli/program.ts';
import { createFrontdesk, type FrontdeskOptions, type Listeners, type ModuleName } from '../../../src/index.ts';
import type { TestServers } from '../serve.ts';
import { type Ended, type RunOptions, scratch } from './frontdesk-process.ts';

/** The last command that was started: it may outlive its test, when that has timed out. */
let last: Promise<unknown> = Promise.resolve();

/** For commands that end by themselves. That a process ends alike is in cli/program.test.ts, for each way to end. */
export function runCommand(args: readonly string[], options: RunOptions = {}): Promise<Ended> {
  const ended = last.then(() => runAlone(args, options));
  last = ended.catch(() => {});
  return ended;
}

/** Two at once would take each other's directory for that of the tests. */
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

/** The message that the process would end with. Commander has printed its own. */
async function failureOf(args: readonly string[]): Promise<string | undefined> {
  const program = createProgram();
  for (const command of [program, ...program.commands.flatMap((one) => [one, ...one.commands])]) command.exitOverride();
  try {
    await program.parseAsync(args, { from: 'user' });
  } catch (error) {
    if (!(error instanceof CommanderError)) return error instanceof Error ? error.message : String(error);
    process.exitCode = error.exitCode;
  }
  return undefined;
}

/** Replaces what a command sees of its process. Returns the function that restores it. */
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

/** What `serve` is to run in the directory `cwd`, which has a `config`. */
export interface Served extends Pick<FrontdeskOptions, 'logger'> {
  /** None, or `--only` with its modules. */
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd: string;
}

/** A desk of the library with the settings that `serve` would take, on free ports where they name none. */
export async function serveHere(
  servers: TestServers,
  { args = [], env = {}, cwd, ...options }: Served,
): Promise<Listeners> {
  const directory = join(cwd, 'config');
  const parsed = parseSettings({ ...readSettingsFile(directory), ...scratch, ...env });
  if (!parsed.ok) throw new Error(parsed.message);
  const { configDir: _, ...settings } = parsed.settings;
  // An unknown name is refused by createFrontdesk as well.
  const only = args[0] === '--only' ? (args[1]?.split(',') as ModuleName[]) : undefined;
  const demo = only?.some(isDemoModule);
  const desk = await createFrontdesk({ ...settings, only, demo, config: directory, ...options });
  servers.later(desk.close);
  return desk.listen();
}
