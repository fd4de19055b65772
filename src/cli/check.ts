/** The `check` command: reports the errors of a configuration, or its routes in matching order and its API versions. */
import {
  type Configuration,
  type ConfigurationError,
  escapedData,
  fileError,
  formatAnnotations,
  formatErrors,
  type LoadedConfiguration,
  lineOfSetting,
  loadConfiguration,
  loadDirectory,
  loadTls,
  openRouteNotices,
  processNotices,
  type SettingFault,
} from '#config';
import { messageOf } from '#foundation';
import type { Setup } from '#server';
import { chooseModules, type ModuleChoice, type ModuleName, noticeContextOf, type Settings } from '#server/product';
import { startDry } from './dry-start.ts';
import { type CheckedRoutes, checkedRoutes, findingsOf, formatRoutes } from './route-list.ts';
import { colours, print } from './terminal.ts';
import { chooseThreads } from './threads.ts';

/** `github`: annotations of lines, as workflow commands of GitHub Actions. */
export type CheckFormat = 'text' | 'json' | 'github';

export interface CheckOptions extends ModuleChoice {
  /** @default 'text' */
  readonly format?: CheckFormat | undefined;
  /** Of the settings that the others are checked without. */
  readonly settingFaults?: readonly SettingFault[] | undefined;
}

interface Report {
  readonly errors: readonly ConfigurationError[];
  readonly notices: readonly ConfigurationError[];
  /** Why a server would not start although there are no errors. */
  readonly startError?: Error | undefined;
  /** Undefined if there are errors. */
  readonly routes?: CheckedRoutes | undefined;
}

/**
 * Checks the directory in the settings, or the `given` one. Sets the exit code to 1 if there are errors in its files.
 * Rejects with a user-facing Error if they are valid, but a server would not start with them.
 */
export async function check(
  settings: Settings,
  given: string | undefined,
  { format = 'text', settingFaults = [], ...choice }: CheckOptions,
): Promise<void> {
  const directory = given ?? settings.configDir;
  const clusterContents = settings.kubernetes ? await readClusterOf(settings) : undefined;
  const loaded = await (settings.kubernetes
    ? loadWithCluster({ ...settings, configDir: directory }, choice, clusterContents)
    : given === undefined
      ? loadDirectory(directory, settings)
      : loadConfiguration(directory, settings));
  const { configuration, notices } = loaded;
  const errors = [...settingFaults.map((fault) => settingError(fault, directory)), ...loaded.errors];
  if (errors.length > 0) {
    reports[format]({ errors, notices });
    process.exitCode = 1;
    return;
  }
  const more = await checkProcess(configuration, { ...settings, configDir: directory }, { ...choice, clusterContents });
  reports[format]({ ...more, errors, notices: [...notices, ...more.notices] });
  if (more.startError !== undefined) throw more.startError;
}

type ClusterContents = Setup['clusterContents'];

/** The cluster is read once, so that all that is said about it holds at the same time. */
async function readClusterOf(settings: Settings): Promise<ClusterContents> {
  const { readCluster } = await import('#server');
  return readCluster(settings);
}

/** Refused objects are errors here, although a server would start without them. */
async function loadWithCluster(
  settings: Settings,
  choice: ModuleChoice,
  clusterContents: ClusterContents,
): Promise<LoadedConfiguration> {
  const { loadFromCluster } = await import('#server');
  const modules = chooseModules(choice, undefined, settings);
  return loadFromCluster({ settings, has: (module) => modules.includes(module), clusterContents });
}

function settingError({ names: [name = ''], text, source }: SettingFault, directory: string): ConfigurationError {
  const inFile = process.env[name] ? undefined : lineOfSetting(directory, name);
  const { file, line } = source ?? inFile ?? { file: '<settings>', line: 0 };
  return fileError(file, text, 'frontdesk help settings lists the settings and the values that they take.', line);
}

/** Checks what a process with these settings would do with a valid configuration. */
async function checkProcess(
  configuration: Configuration,
  settings: Settings,
  { clusterContents, ...choice }: ModuleChoice & { readonly clusterContents: ClusterContents },
): Promise<Omit<Report, 'errors'>> {
  const { threads, configDir: directory } = settings;
  const modules = chooseModules(choice, configuration, settings);
  const isChosen = choice.only !== undefined || choice.demo === true || settings.kubernetes;
  const context = noticeContextOf(modules, settings, { isChosen, directory });
  const ofRoutes = modules.includes('gateway') ? openRouteNotices(configuration) : [];
  const notices = [...(await processNotices(configuration, context)), ...ofRoutes];
  try {
    const desk = await startDry(settings, choice, clusterContents);
    await desk.close();
  } catch (error) {
    return { notices, startError: error instanceof Error ? error : new Error(messageOf(error)) };
  }
  const has = (module: ModuleName) => modules.includes(module);
  const isLocal = (service: string) => modules.some((module) => module === service);
  const chosen = chooseThreads({ threads, demo: choice.demo === true, settings, has });
  const { certificateNotices } = await import('#server');
  const ofCertificates = certificateNotices(await loadTls(settings), settings.tlsDir, Date.now());
  return {
    notices: [...notices, ...ofCertificates],
    routes: checkedRoutes(configuration, { settings, threads: chosen, isLocal }),
  };
}

const reports: Readonly<Record<CheckFormat, (report: Report) => void>> = {
  text({ errors, notices, routes }) {
    for (const found of [notices, errors])
      if (found.length > 0) print(process.stderr, `${formatErrors(found, process.cwd())}\n`, colours.errors);
    if (routes !== undefined) print(process.stdout, formatRoutes(routes), colours.routes);
  },
  json({ errors, notices, startError, routes }) {
    const findings = { errors: findingsOf(errors), notices: findingsOf(notices), start_error: startError?.message };
    process.stdout.write(`${JSON.stringify({ ...findings, ...routes }, undefined, 2)}\n`);
  },
  github({ errors, notices, startError }) {
    // GitHub looks for files from the top of the repository, where `check` need not run.
    const workspace = process.env['GITHUB_WORKSPACE'] || process.cwd();
    const lines = [
      ...formatAnnotations(errors, 'error', workspace),
      ...(startError === undefined ? [] : [`::error::${escapedData(startError.message)}`]),
      ...formatAnnotations(notices, 'warning', workspace),
    ];
    process.stdout.write(lines.map((line) => `${line}\n`).join(''));
  },
};
