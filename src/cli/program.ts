/** The commands with their options: serve, split, init, check, explain, users, hash-password. */
import { Command, InvalidArgumentError, Option } from 'commander';
import {
  chooseModules,
  finish,
  formatErrors,
  formatSettings,
  loadConfiguration,
  type ModuleChoice,
  type ModuleName,
  moduleNames,
  packageVersion,
  parseSettings,
  processNotices,
  readSettingsFile,
  type Settings,
} from '#config';
import { listRoutes, listVersions } from '#routing';
import type { ExplainOptions } from './explain.ts';
import type { ServeOptions } from './serve.ts';
import { colours, print, untilTaken } from './terminal.ts';

/** Ends the process with 1 when the command fails, and with one message that is fit for a terminal. */
export async function runProgram(): Promise<void> {
  surviveOutput();
  await createProgram().parseAsync().catch(fail);
}

/** Parsing arguments runs the command that they name. */
export function createProgram(): Command {
  const program = new Command('frontdesk')
    .description('An API gateway with the services behind it, in one process or many.')
    .version(packageVersion(), '-v, --version')
    .showHelpAfterError('frontdesk --help lists the commands and settings.')
    .configureOutput({ outputError: (text, write) => write(withoutArguments(text)) })
    .addHelpText(
      'after',
      `\nSettings (environment variables, or lines NAME=value of settings.env in the configuration directory):\n${formatSettings()}`,
    );
  addServers(program);
  addConfigurationTools(program);
  addUserTools(program);
  return program;
}

/** Commands that run until they are stopped. */
function addServers(program: Command): void {
  const serving = program
    .command('serve')
    .description('run the gateway, and those of its modules that the records name')
    .addHelpText('after', settingsHint)
    .showHelpAfterError(hint('frontdesk serve --demo', 'PORT=9000 frontdesk serve', settingsHint));
  withModules(serving)
    .addOption(new Option('--child', 'report to a parent process in place of printing').hideHelp())
    .action(startServer);

  program
    .command('split')
    .description('run the same as processes of their own, on this machine, one for each module')
    .addHelpText('after', settingsHint)
    .showHelpAfterError(hint('frontdesk split --demo', 'PORT=9000 frontdesk split', settingsHint))
    .option('--demo', demoOption)
    .action(startSplit);
}

/** The text that follows an error: what to type instead. */
function hint(example: string, other: string, more = ''): string {
  return `Type for example: ${example}\n              or: ${other}${more}`;
}

const settingsHint =
  '\nSettings such as the port are environment variables, or lines of settings.env; frontdesk --help lists them.';

/** Arguments may hold a password, and the command line that the user sees has them anyway. */
function withoutArguments(text: string): string {
  return text.replace(/^(error: too many arguments.*)\. Expected \d+ .* but got \d+: .*$/s, '$1\n');
}

const demoOption = "run the demo: hotels, cars, messages and the configuration's demo data";

function withModules(command: Command): Command {
  return command
    .option('--only <modules>', `only these modules: ${moduleNames.join(', ')}`, parseModules)
    .option('--demo', demoOption);
}

/** Commands that write a configuration, or show what it says. */
function addConfigurationTools(program: Command): void {
  program
    .command('init')
    .description('write a small configuration to start from: one service, one user with a new password, one limit')
    .showHelpAfterError(hint('frontdesk init', 'frontdesk init ./config --service http://127.0.0.1:3000'))
    .argument('[directory]', 'where to write it (default: CONFIG_DIR)')
    .option('--service <reference>', 'where requests are sent', 'http://127.0.0.1:3000')
    .action(init);

  const checking = program
    .command('check')
    .description(
      'read a configuration: list its routes in the order in which they are tried, and its versions, or its errors',
    )
    .showHelpAfterError(hint('frontdesk check', 'frontdesk check ./config'))
    .argument('[directory]', 'configuration directory (default: CONFIG_DIR)');
  withModules(checking).action(check);

  const explaining = program
    .command('explain')
    .description('show what would become of a request, stage by stage, without sending it')
    .showHelpAfterError(
      hint('frontdesk explain GET /v1/hotels', "frontdesk explain POST /v1/hotels --user ann -H 'X-Plan: gold'"),
    )
    .argument('<method>', 'GET, POST, …')
    .argument('<url>', 'a path with its query, or a URL')
    .option('-H, --header <line>', 'a header as "Name: value"; may come several times', addLine, [])
    .option('--user <name>', 'the user that the auth service is assumed to find')
    .option('--from <address>', 'the IP address that it comes from [127.0.0.1]')
    .option('--all', 'list also the mappings that the path alone rules out')
    .option('--json', 'as JSON in place of text');
  withModules(explaining).action(explain);
}

const passwordHint =
  '\nIt asks for the password, or reads it from a pipe: an argument would stay in the history of the shell.';

function addUserTools(program: Command): void {
  program
    .command('users')
    .description('change users.yaml')
    .showHelpAfterError(hint('frontdesk users add ann', 'frontdesk users add ann --role admin', passwordHint))
    .command('add')
    .description('add a user, with a password that is asked for, or read from standard input')
    .argument('<name>', 'the name of the user')
    .option('--role <name>', 'a role, such as admin; may come several times', addLine, [])
    .action(add);

  program
    .command('hash-password')
    .description('ask for a password, or read it from standard input, and print the line for users.yaml')
    .showHelpAfterError(hint('frontdesk hash-password', 'frontdesk hash-password < password.txt', passwordHint))
    .action(async () => (await import('./users.ts')).printPasswordHash());
}

/**
 * The reader of the output may have left, as in `frontdesk check | head`, or its disk may be full: a server serves on, and
 * another command goes on and ends as it should, on a full disk with 1.
 */
function surviveOutput(): void {
  let isReported = false;
  process.stdout.on('error', ({ code, message }: NodeJS.ErrnoException) => {
    if (code === 'EPIPE' || isReported) return;
    isReported = true;
    process.exitCode = 1;
    print(process.stderr, `frontdesk: the standard output cannot be written: ${message}\n`, colours.errors);
  });
  // There is no other place to report it.
  process.stderr.on('error', () => {});
}

// What only one command needs is loaded by it alone.

async function startServer(options: ServeOptions): Promise<void> {
  const { serve } = await import('./serve.ts');
  await serve(requiredSettings(environment(options)), options);
}

async function startSplit({ demo = false }: ModuleChoice): Promise<void> {
  const settings = requiredSettings();
  const { configuration } = await loadConfiguration(settings.configDir, settings);
  const modules = chooseModules({ demo }, configuration, settings.serviceAddresses);
  const { split } = await import('./split.ts');
  const exitCode = await split(environment(), {
    modules,
    demo,
    stopMs: settings.drainMs + settings.shutdownTimeoutMs,
  });
  await untilTaken(process.stdout);
  process.exit(exitCode);
}

async function init(directory: string | undefined, { service }: { service: string }): Promise<void> {
  const { initialise } = await import('./init.ts');
  process.stdout.write(await initialise(requiredSettings(), { directory, service }));
}

async function check(given: string | undefined, choice: ModuleChoice): Promise<void> {
  const settings = requiredSettings(environment({ directory: given }));
  const { serviceAddresses, configDir } = settings;
  const directory = given ?? configDir;
  const { configuration, errors, notices } = await loadConfiguration(directory, settings);
  const modules = chooseModules(choice, configuration, serviceAddresses);
  const isChosen = choice.only !== undefined || choice.demo === true;
  const here =
    errors.length > 0 ? [] : finish(processNotices(configuration, { modules, isChosen, serviceAddresses, directory }));
  for (const found of [[...notices, ...here], errors])
    if (found.length > 0) print(process.stderr, `${formatErrors(found, process.cwd())}\n`, colours.errors);
  if (errors.length > 0) process.exitCode = 1;
  else {
    const isLocal = (service: string) => modules.some((name) => name === service);
    const routes = listRoutes(configuration.mappings, { ...settings, isLocal });
    for (const line of [...routes, ...listVersions(configuration.versions)])
      print(process.stdout, `${line}\n`, colours.routes);
  }
}

async function explain(method: string, url: string, options: Omit<ExplainOptions, 'method' | 'url'>): Promise<void> {
  const { explainOnce } = await import('./explain.ts');
  const { text, refusal } = await explainOnce(requiredSettings(), { method, url, ...options });
  if (options.json) process.stdout.write(text);
  else print(process.stdout, text, colours.explanation);
  if (refusal !== undefined) throw new Error(refusal);
}

async function add(name: string, { role }: { readonly role: readonly string[] }): Promise<void> {
  const { addUser } = await import('./users.ts');
  process.stdout.write(await addUser(requiredSettings().configDir, { name, roles: role }));
}

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * The variables of the process win over those of the directory's file, unless they are empty, which counts as unset. A
 * child process reads no file: its parent passes it the variables that it needs.
 */
function environment({
  child = false,
  directory,
}: {
  child?: boolean;
  directory?: string | undefined;
} = {}): Environment {
  if (child) return process.env;
  const file = readSettingsFile(directory ?? (process.env['CONFIG_DIR'] || './config'));
  return { ...file, ...Object.fromEntries(Object.entries(process.env).filter(([, value]) => value !== '')) };
}

function requiredSettings(variables = environment()): Settings {
  const result = parseSettings(variables);
  if (result.ok) return result.settings;
  throw new Error(result.message);
}

function parseModules(text: string): ModuleName[] {
  const names = text.split(',').map((name) => name.trim());
  const known = moduleNames.filter((name) => names.includes(name));
  if (known.length === names.length && known.length > 0) return known;
  throw new InvalidArgumentError(`Choose from ${moduleNames.join(', ')}, with commas between them.`);
}

function addLine(line: string, lines: readonly string[]): readonly string[] {
  return [...lines, line];
}

function fail(error: unknown): never {
  print(process.stderr, `frontdesk: ${error instanceof Error ? error.message : String(error)}\n`, colours.errors);
  process.exit(1);
}
