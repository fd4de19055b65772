/** The command line: the only file that reads the environment, speaks to the terminal and ends the process. */
import { createInterface } from 'node:readline';
import { Command, InvalidArgumentError } from 'commander';
import { type DestinationStream, destination, pino } from 'pino';
import { hashPassword } from '#auth';
import {
  formatErrors,
  formatSettings,
  loadConfiguration,
  type ModuleName,
  moduleNames,
  packageVersion,
  parseSettings,
  type Settings,
} from '#config';
import { listRoutes } from '#routing';
import type { Frontdesk, Listeners } from '#server';
import type { Asked } from './explain.ts';
import { initialise } from './init.ts';

export async function runProgram(): Promise<void> {
  const program = new Command('frontdesk')
    .description('An API gateway with the services that it fronts, in one process or many.')
    .version(packageVersion(), '-v, --version')
    .showHelpAfterError()
    .addHelpText('after', `\nSettings (environment variables):\n${formatSettings()}`);

  program
    .command('serve', { isDefault: true })
    .description('run the gateway and its services')
    .option('--only <modules>', `only these modules: ${moduleNames.join(', ')}`, parseModules)
    .action(({ only }: { only?: ModuleName[] }) => serve(requiredSettings(), only ?? moduleNames));

  program
    .command('init')
    .description('write a small configuration to start from: one service, one user with a new password, one limit')
    .argument('[directory]', 'where it is to stand (default: CONFIG_DIR)')
    .option('--service <reference>', 'where requests are sent', 'http://127.0.0.1:3000')
    .action((directory: string | undefined, { service }: { service: string }) => init(directory, service));

  program
    .command('check')
    .description('read a configuration: list its routes in the order in which they are tried, or what is wrong with it')
    .argument('[directory]', 'configuration directory (default: CONFIG_DIR)')
    .action((directory?: string) => check(requiredSettings(), directory));

  program
    .command('explain')
    .description('tell what would become of a request, stage by stage, without sending it to anybody')
    .argument('<method>', 'GET, POST, …')
    .argument('<url>', 'a path with its query, or a URL')
    .option('-H, --header <line>', 'a header as "Name: value"; may come several times', addLine, [])
    .option('--user <name>', 'who the auth service shall be taken to find')
    .option('--from <address>', 'the IP address that it comes from [127.0.0.1]')
    .option('--all', 'list the mappings as well whose path alone rules them out')
    .option('--json', 'as data, in place of text')
    .option('--only <modules>', 'as for serve', parseModules)
    .action((method: string, url: string, options: Omit<Asked, 'method' | 'url'>) =>
      explain({ method, url, ...options }),
    );

  program
    .command('hash-password')
    .description('read a password from standard input and print the line for users.yaml')
    .action(printHash);

  // Who read our output may have left, as in `frontdesk check | head`; what runs goes on, and ends as it should.
  for (const output of [process.stdout, process.stderr]) {
    output.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EPIPE') throw error;
    });
  }

  await program.parseAsync().catch(fail);
}

async function serve({ configDir, ...settings }: Settings, only: readonly ModuleName[]): Promise<void> {
  const output = openLog();
  const logger = pino({ level: settings.logLevel, base: null }, output);
  // Here, because the commands that only read a configuration do without.
  const { createFrontdesk } = await import('#server');
  const desk = await createFrontdesk({ ...settings, config: configDir, only, demo: true, logger });
  const listeners = await desk.listen().catch(async (error) => {
    await desk.close();
    throw error;
  });
  // Whoever waits for the banner may send a signal as soon as it is there.
  stopOnSignal(desk, output);
  process.stdout.write(banner(listeners, desk.demoUsers));
}

type Log = DestinationStream & { readonly flushSync: () => void };

/**
 * To a terminal line by line; elsewhere in blocks of 64 KiB, or what there is after a second and at the end. The lines
 * are gathered here, since the destination's own `minLength` measures all that it holds anew at each line.
 */
function openLog(): Log {
  const output = destination({ fd: 1, sync: false });
  if (process.stdout.isTTY) return output;
  let lines = '';
  const pass = () => {
    if (lines !== '') output.write(lines);
    lines = '';
  };
  const flushSync = () => {
    pass();
    output.flushSync();
  };
  setInterval(pass, 1000).unref();
  process.once('exit', flushSync);
  return {
    write(line) {
      lines += line;
      if (lines.length >= 64 * 1024) pass();
    },
    flushSync,
  };
}

/** The first signal stops gracefully, the second at once. */
function stopOnSignal(desk: Frontdesk, output: Log): void {
  const signals = ['SIGINT', 'SIGTERM'] as const;
  const stop = (signal: NodeJS.Signals) => {
    for (const again of signals) process.removeListener(again, stop).once(again, () => process.exit(1));
    process.stdout.write(`\n${signal}: finishing what runs, then stopping. Once more stops at once.\n`);
    desk.close().then(() => {
      output.flushSync();
      process.exit(0);
    }, fail);
  };
  for (const signal of signals) process.on(signal, stop);
}

function banner({ gateway, ratelimit, ratelimitHttp, auth, admin }: Listeners, demoUsers: readonly string[]): string {
  const lines = [
    `frontdesk ${packageVersion()} is ready.`,
    ...(gateway ? [`  gateway      ${gateway.url}`] : []),
    ...(ratelimit ? [`  rate limits  ${ratelimit.url}`] : []),
    ...(ratelimitHttp ? [`  over HTTP    ${ratelimitHttp.url}`] : []),
    ...(auth ? [`  auth         ${auth.url}`] : []),
    ...(admin ? [`  admin        ${admin.url}`] : []),
  ];
  if (gateway && auth && ratelimit && demoUsers.includes('demo')) lines.push('', ...examples(gateway.url));
  return `${lines.join('\n')}\n\n`;
}

function examples(url: string): string[] {
  return [
    'Demo users: demo (password demo) and guest (password guest). Try:',
    `  curl -i -u demo:demo ${url}/v1/hotels/bookings/0b6f1c52-7d7e-4a57-9d43-5f0f6c1d2a01`,
    `  curl -i -u demo:demo -H 'x-gateway-test-allow: me' ${url}/v1/hotels`,
    `  curl -i ${url}/v2/messages/1`,
  ];
}

async function init(directory: string | undefined, service: string): Promise<void> {
  process.stdout.write(await initialise(requiredSettings(), { directory, service }));
}

async function check(settings: Settings, directory = settings.configDir): Promise<void> {
  const { configuration, errors, notices } = await loadConfiguration(directory, settings);
  if (notices.length > 0) process.stderr.write(`${formatErrors(notices, process.cwd())}\n`);
  if (errors.length > 0) {
    process.stderr.write(`${formatErrors(errors, process.cwd())}\n`);
    process.exitCode = 1;
    return;
  }
  for (const line of listRoutes(configuration.mappings)) process.stdout.write(`${line}\n`);
}

async function explain(asked: Asked): Promise<void> {
  const { explainOnce } = await import('./explain.ts');
  const { text, refusal } = await explainOnce(requiredSettings(), asked);
  process.stdout.write(text);
  if (refusal !== undefined) throw new Error(refusal);
}

function addLine(line: string, lines: readonly string[]): readonly string[] {
  return [...lines, line];
}

/** A password on the command line would stand in the process list and in the shell's history. */
async function printHash(): Promise<void> {
  if (process.stdin.isTTY) process.stderr.write('Password (then Enter): ');
  for await (const line of createInterface({ input: process.stdin })) {
    if (line === '') break;
    process.stdout.write(`${await hashPassword(line)}\n`);
    return;
  }
  throw new Error('there was no password on standard input');
}

function requiredSettings(): Settings {
  const result = parseSettings(process.env);
  if (result.ok) return result.settings;
  throw new Error(result.message);
}

function parseModules(text: string): ModuleName[] {
  const names = text.split(',').map((name) => name.trim());
  const known = moduleNames.filter((name) => names.includes(name));
  if (known.length === names.length && known.length > 0) return known;
  throw new InvalidArgumentError(`Choose from ${moduleNames.join(', ')}, with commas between them.`);
}

function fail(error: unknown): never {
  process.stderr.write(`frontdesk: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exit(1);
}
