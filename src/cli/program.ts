/** Defines the commands and their options: serve, split, init, check, explain, crds, limits, users, hash-password, completion. */
import { Argument, Command, CommanderError, InvalidArgumentError, Option } from 'commander';
import {
  demoDirectory,
  type Environment,
  formatResourceDefinitions,
  hasConfiguration,
  loadDirectory,
  packageVersion,
  parseSettings,
  readSettingsFile,
  type SettingFault,
  SettingsError,
} from '#config';
import { messageOf } from '#foundation';
import {
  chooseModules,
  type ModuleChoice,
  type ModuleName,
  moduleNames,
  type Settings,
  settingTable,
} from '#server/product';
import type { CheckFormat, CheckOptions } from './check.ts';
import type { ExplainOptions } from './explain.ts';
import type { Shell } from './help/completion.ts';
import { helpOnSetting, settingSubjects, settingsHelp } from './help/settings.ts';
import { improveError } from './help/usage-errors.ts';
import type { LimitsOptions } from './limits.ts';
import type { ServeOptions } from './serve.ts';
import { colours, print, untilDrained, wrapFor } from './terminal.ts';

/** When the command fails, prints one message and ends the process with exit code 1. */
export async function runProgram(): Promise<void> {
  handleOutputErrors();
  await createProgram().parseAsync().catch(fail);
}

/** `parseAsync` of the result runs the command that the arguments name. */
export function createProgram(): Command {
  const program = new Command('frontdesk')
    .description('An API gateway and the services behind it, in one process or in several.')
    .version(packageVersion(), '-v, --version', 'print the version')
    .helpOption('-h, --help', 'print help')
    .helpCommand(false)
    .showHelpAfterError('Run frontdesk --help to list the commands and settings.')
    // Otherwise commander would exit before Node reports that it cannot write the help.
    .exitOverride()
    .addHelpText('after', ({ error }) => wrapFor(error ? process.stderr : process.stdout, `\n${settingsHelp()}`));
  addServers(program);
  addConfigurationTools(program);
  addLimitTools(program);
  addUserTools(program);
  addCompletion(program);
  program
    .command('help')
    .description('print help for a command, for the settings of a topic, or for one setting')
    .argument('[command...]', 'a command, or `settings` and a topic or the name of a setting')
    .action((names: readonly string[]) => help(program, names));
  for (const command of commandsOf(program))
    command.configureOutput({ outputError: (text, write) => write(improveError(text, command.args)) });
  return program;
}

/** The command itself and all commands below it. */
function commandsOf(command: Command): readonly Command[] {
  return [command, ...command.commands.flatMap(commandsOf)];
}

function help(program: Command, names: readonly string[]): void {
  if (names[0] === 'settings') helpOnSettings(names[1]);
  else helpOnCommand(program, names);
}

/** Unlike the help command of commander, does not print the whole help for an unknown command. */
function helpOnCommand(program: Command, names: readonly string[]): void {
  const find = (above: Command | undefined, name: string) => above?.commands.find((one) => one.name() === name);
  const command = names.reduce(find, program) ?? program.error(`error: unknown command '${names.join(' ')}'`);
  command.help();
}

function helpOnSettings(subject: string | undefined): void {
  const text = subject === undefined ? settingsHelp() : helpOnSetting(subject);
  process.stdout.write(wrapFor(process.stdout, `${text}\n`));
}

/** Adds the commands that run until they are stopped. */
function addServers(program: Command): void {
  const serving = program.command('serve').description('run the gateway and the modules that the records name');
  withModules(withExamples(serving, ['frontdesk serve --demo', 'PORT=9000 frontdesk serve'], settingsHint))
    .option('--kubernetes', kubernetesOption)
    .addOption(new Option('--child', 'report to a parent process instead of printing').hideHelp())
    .action(startServer);

  const splitting = program
    .command('split')
    .description('like serve, but run each module in a separate process on this machine');
  withExamples(splitting, ['frontdesk split --demo', 'PORT=9000 frontdesk split'], settingsHint)
    .option('--demo', demoOption)
    .option('--kubernetes', kubernetesOption)
    .action(startSplit);
}

/** Shows the examples below the help and after a usage error. */
function withExamples(command: Command, examples: readonly string[], hint = ''): Command {
  const text = `${['Examples:', ...examples].join('\n  ')}${hint}`;
  return command.showHelpAfterError(text).addHelpText('afterAll', `\n${text}`);
}

const settingsHint =
  '\nSettings such as the port are environment variables or lines in settings.env. Run frontdesk --help to list them.';

const demoOption = 'include the demo: hotels, cars and messages, with the demo data of the configuration';

const kubernetesOption = 'read records and addresses from the Kubernetes cluster of the pod or of KUBECONFIG';

function withModules(command: Command): Command {
  return command
    .addOption(
      new Option('--only <modules>', 'use only these modules, separated by commas')
        .choices(moduleNames)
        .argParser(parseModules),
    )
    .option('--demo', demoOption);
}

/** Adds the commands that write, check or explain a configuration. */
function addConfigurationTools(program: Command): void {
  const initialising = program
    .command('init')
    .description('write a starter configuration with one service, one user and one limit');
  withExamples(initialising, ['frontdesk init', 'frontdesk init ./config --service http://127.0.0.1:3000'])
    .argument('[directory]', 'where to write it (default: CONFIG_DIR)', parseDirectory)
    .option('--service <address>', 'the service to send requests to', 'http://127.0.0.1:3000')
    .action(init);

  const checking = program
    .command('check')
    .description('check a configuration: print its errors, or its routes in matching order and its API versions')
    .argument('[directory]', 'the configuration directory (default: CONFIG_DIR)', parseDirectory)
    .addOption(
      new Option('--format <format>', 'how to print it: github writes annotations for GitHub Actions')
        .choices(checkFormats)
        .default('text' satisfies CheckFormat),
    )
    .addOption(new Option('--json', 'short for --format json').conflicts('format'));
  withModules(
    withExamples(checking, ['frontdesk check', 'frontdesk check ./config', 'frontdesk check --format github']),
  )
    .option('--kubernetes', kubernetesOption)
    .action(checkFiles);

  const explaining = program
    .command('explain')
    .description('show how the gateway would handle a request, stage by stage, without sending it')
    .argument('<method>', 'GET, POST, …')
    .argument('<url>', 'a path with an optional query, or a URL')
    .option('-H, --header <line>', 'a header as "Name: value"; can be repeated', append)
    .addOption(new Option('-u <name:password>', 'the credentials, as curl takes them').conflicts('user'))
    .option('--user <name>', 'assume that the auth service identifies this user (default: check those in -u or -H)')
    .option('--from <address>', 'the IP address of the client (default: 127.0.0.1)')
    .option('--all', 'also list the mappings that do not match the path')
    .option('--json', 'print JSON');
  withExamples(explaining, [
    'frontdesk explain GET /v1/hotels',
    "frontdesk explain POST /v1/hotels --user ann -H 'X-Plan: gold'",
  ]);
  withModules(explaining).option('--kubernetes', kubernetesOption).action(explain);

  withExamples(program.command('crds'), ['frontdesk crds | kubectl apply -f -'])
    .description('print the CustomResourceDefinitions of the records, for a Kubernetes cluster')
    .action(() => void process.stdout.write(formatResourceDefinitions()));
}

const shells: readonly Shell[] = ['bash', 'zsh', 'fish'];

const checkFormats: readonly CheckFormat[] = ['text', 'json', 'github'];

const limitsHint = `
An entry names a key of the limits and the client's value for it, from general to specific. With REDIS_URL the commands
use the counters in Redis. Otherwise they ask a running gateway, as an administrator whose password is prompted for or
read from standard input.`;

function addLimitTools(program: Command): void {
  const limits = program
    .command('limits')
    .description('show or reset the rate limits of one client')
    .helpCommand('help [command]', 'print help for a command');
  withExamples(limits, [
    'frontdesk limits show gateway user=ann',
    'frontdesk limits reset gateway user=ann --user demo',
  ]);
  const add = (action: 'show' | 'reset', description: string) =>
    withExamples(limits.command(action), [`frontdesk limits ${action} gateway user=ann --user demo`], limitsHint)
      .description(description)
      .argument('<domain>', 'the domain of the limits')
      .argument('<entries...>', 'one or more of key=value')
      .option('--url <address>', 'the address of the gateway (default: HOST and PORT on this machine)')
      .option('--user <name>', 'the name of an administrator of the gateway')
      .action((domain: string, entries: readonly string[], options: LimitsChoice) =>
        limitsOf(action, { domain, entries, ...options }),
      );
  add('show', 'show what is left of the limits of a client');
  add('reset', 'reset the limits of a client, so that it starts anew');
}

type LimitsChoice = Pick<LimitsOptions, 'url' | 'user'>;

const passwordHint =
  '\nThe password is prompted for or read from standard input: an argument would stay in the history of the shell.';

function addUserTools(program: Command): void {
  const users = program
    .command('users')
    .description('manage the users in users.yaml')
    .helpCommand('help [command]', 'print help for a command');
  withExamples(users, ['frontdesk users add ann', 'frontdesk users add-key ann', 'frontdesk users list']);
  withExamples(users.command('add'), ['frontdesk users add ann', 'frontdesk users add ann --role admin'], passwordHint)
    .description('add a user; the password is prompted for or read from standard input')
    .argument('<name>', 'the name of the user')
    .option('--role <name>', 'a role, such as admin; can be repeated', append)
    .action(add);
  users.command('list').description('list the users, their roles and the names of their API keys').action(listUsers);
  withExamples(users.command('set-password'), ['frontdesk users set-password ann'], passwordHint)
    .description('change the password of a user; it is prompted for or read from standard input')
    .argument('<name>', 'the name of the user')
    .action((name: string) => changeUsers(({ setPassword }, directory) => setPassword(directory, name)));
  withExamples(users.command('remove'), ['frontdesk users remove ann'])
    .description('remove a user with all of its API keys')
    .argument('<name>', 'the name of the user')
    .action((name: string) => changeUsers(({ removeUser }, directory) => removeUser(directory, name)));
  addKeyTools(users);

  const hashing = program
    .command('hash-password')
    .description('print the line for users.yaml; the password is prompted for or read from standard input');
  withExamples(hashing, ['frontdesk hash-password', 'frontdesk hash-password < password.txt'], passwordHint).action(
    async () => (await import('./users.ts')).printPasswordHash(),
  );
}

function addCompletion(program: Command): void {
  const completing = program.command('completion').description('print a script that completes commands and options');
  withExamples(completing, [
    'source <(npx frontdesk completion bash)',
    'source <(npx frontdesk completion zsh)',
    'npx frontdesk completion fish | source',
  ])
    .addArgument(new Argument('<shell>', 'the shell').choices(shells))
    .action(async (shell: Shell) => {
      const { completionScript } = await import('./help/completion.ts');
      const more = { 'frontdesk help': ['settings'], 'frontdesk help settings': settingSubjects };
      process.stdout.write(completionScript(program, shell, more));
    });
}

function addKeyTools(users: Command): void {
  withExamples(users.command('add-key'), ['frontdesk users add-key ann', 'frontdesk users add-key nightly-job --new'])
    .description('create an API key for a user, and print it once: users.yaml contains its digest')
    .argument('<name>', 'the name of the user')
    .option('--key-name <name>', 'a name for the key, such as laptop (default: key-1, key-2, …)')
    .option('--new', 'add the user, who has no password, such as a program')
    .action(addKey);
  withExamples(users.command('remove-key'), ['frontdesk users remove-key ann key-1'])
    .description('remove an API key of a user, which is then refused')
    .argument('<name>', 'the name of the user')
    .argument('<key>', 'the name of the key, which frontdesk users list shows')
    .action((name: string, key: string) => changeUsers(({ removeKey }, directory) => removeKey(directory, name, key)));
}

/**
 * Keeps the process running when the reader of its output has left, as in `frontdesk check | head`, or when the disk is
 * full. A full disk is reported once and makes the exit code 1.
 */
function handleOutputErrors(): void {
  let isReported = false;
  process.stdout.on('error', ({ code, message }: NodeJS.ErrnoException) => {
    if (code === 'EPIPE' || isReported) return;
    isReported = true;
    process.exitCode = 1;
    print(process.stderr, `frontdesk: cannot write to standard output: ${message}\n`, colours.errors);
  });
  // A failure to write to standard error cannot be reported anywhere.
  process.stderr.on('error', () => {});
}

// Each command imports the modules that no other command needs.

async function startServer(options: ServeOptions & Place): Promise<void> {
  const { serve } = await import('./serve.ts');
  // A child process does not read settings.env: its parent passes it the variables that it needs.
  await serve(parseSettings(settingTable, options.child ? process.env : environment(options)), options);
}

async function startSplit({ demo = false, kubernetes }: ModuleChoice & Place): Promise<void> {
  const env = environment({ demo, kubernetes });
  const settings = parseSettings(settingTable, env);
  const { configuration } = await loadDirectory(settings.configDir, settings);
  const modules = chooseModules({ demo }, configuration, settings);
  const { split } = await import('./split.ts');
  const exitCode = await split(env, {
    modules,
    demo,
    stopMs: settings.drainMs + settings.shutdownTimeoutMs,
  });
  await untilDrained(process.stdout);
  process.exit(exitCode);
}

async function init(directory: string | undefined, { service }: { service: string }): Promise<void> {
  const { initialise } = await import('./init.ts');
  process.stdout.write(await initialise(readSettings(), { directory, service }));
}

async function checkFiles(
  given: string | undefined,
  { json, format, kubernetes, ...choice }: CheckOptions & Place & { readonly json?: boolean },
): Promise<void> {
  const { check } = await import('./check.ts');
  const { settings, faults } = usableSettings({ directory: given, kubernetes, ...choice });
  await check(settings, given, { ...choice, format: json ? 'json' : format, settingFaults: faults });
}

async function explain(method: string, url: string, options: ExplainChoice): Promise<void> {
  const { explainOnce } = await import('./explain.ts');
  const { text, rejection } = await explainOnce(readSettings(options), { method, url, ...options });
  if (options.json) process.stdout.write(text);
  else print(process.stdout, text, colours.explanation);
  if (rejection !== undefined) throw new Error(rejection);
}

type ExplainChoice = Omit<ExplainOptions, 'method' | 'url'> & Place;

async function limitsOf(action: 'show' | 'reset', options: LimitsOptions): Promise<void> {
  const { runLimits } = await import('./limits.ts');
  process.stdout.write(await runLimits(readSettings(), action, options));
}

async function add(name: string, { role = [] }: { readonly role?: readonly string[] }): Promise<void> {
  await changeUsers(({ addUser }, directory) => addUser(directory, { name, roles: role }));
}

async function listUsers(): Promise<void> {
  await changeUsers((users, directory) => users.listUsers(directory));
}

type UserTools = typeof import('./users.ts');

/** Prints what the change returns. */
async function changeUsers(change: (tools: UserTools, directory: string) => Promise<string>): Promise<void> {
  process.stdout.write(await change(await import('./users.ts'), readSettings().configDir));
}

/** Only the key is written to standard output, for `KEY=$(frontdesk users add-key …)`. */
async function addKey(user: string, { keyName, new: isNewUser = false }: KeyChoice): Promise<void> {
  const tools = await import('./users.ts');
  const { key, message } = await tools.addKey(readSettings().configDir, { user, name: keyName, isNewUser });
  process.stdout.write(`${key}\n`);
  process.stderr.write(message);
}

interface KeyChoice {
  readonly keyName?: string;
  readonly new?: boolean;
}

interface Place {
  /** @default CONFIG_DIR */
  readonly directory?: string | undefined;
  readonly demo?: boolean | undefined;
  /** Whether the option was given, which is short for the setting. */
  readonly kubernetes?: boolean | undefined;
}

function readSettings(place: Place = {}): Settings {
  return parseSettings(settingTable, environment(place));
}

/** Leaves out the settings that cannot be used, and returns their faults instead of throwing them. */
function usableSettings(place: Place): { readonly settings: Settings; readonly faults: readonly SettingFault[] } {
  const faults: SettingFault[] = [];
  const rest = (error: unknown): Environment => {
    if (!(error instanceof SettingsError)) throw error;
    faults.push(...error.faults);
    return error.rest;
  };
  const parse = (env: Environment): Settings => {
    try {
      return parseSettings(settingTable, env);
    } catch (error) {
      return parse(rest(error));
    }
  };
  const env = environment(place, (table, directory) => {
    try {
      return readSettingsFile(table, directory);
    } catch (error) {
      return rest(error);
    }
  });
  return { settings: parse(env), faults };
}

/** Environment variables take precedence over settings.env in the directory; an empty variable counts as unset. */
function environment({ directory, demo = false, kubernetes }: Place, readFile = readSettingsFile): Environment {
  const set = Object.entries(process.env).filter(([, value]) => value !== '');
  const variables: Environment = { ...Object.fromEntries(set), ...(kubernetes && { KUBERNETES: 'true' }) };
  const usual = settingTable.configDir.default;
  const named = directory ?? variables['CONFIG_DIR'];
  // The demo runs in any directory: where there is no configuration, with that of the package.
  if (demo && named === undefined && !hasConfiguration(usual)) return { ...variables, CONFIG_DIR: demoDirectory() };
  return { ...readFile(settingTable, named ?? usual), ...variables };
}

function parseModules(text: string, previous: readonly ModuleName[] = []): ModuleName[] {
  const names = new Set([...previous, ...text.split(',').map((name) => name.trim())]);
  const known = moduleNames.filter((name) => names.has(name));
  if (known.length === names.size) return known;
  throw new InvalidArgumentError(`Choose from ${moduleNames.join(', ')}, separated by commas.`);
}

/** Rejects the value of an unset shell variable: the default or the current directory would be a bad guess. */
function parseDirectory(text: string): string {
  if (text !== '') return text;
  throw new InvalidArgumentError('Use . for the current directory.');
}

function append(value: string, values: readonly string[] = []): readonly string[] {
  return [...values, value];
}

function fail(error: unknown): void {
  // Commander has printed the help or its error.
  if (error instanceof CommanderError) {
    process.exitCode ||= error.exitCode;
    return;
  }
  print(process.stderr, `frontdesk: ${messageOf(error)}\n`, colours.errors);
  process.exit(1);
}
