/** The `check` command: prints the errors of a configuration, or its routes in matching order and its API versions. */
import { type ConfigurationError, formatErrors, loadConfiguration, loadDirectory, processNotices } from '#config';
import { listRoutes, listVersions } from '#routing';
import { chooseModules, type ModuleChoice, noticeContextOf, type Settings } from '#server/product';
import { startDry } from './dry-start.ts';
import { colours, print } from './terminal.ts';

/**
 * Checks the directory in the settings, or the `given` one. Sets the exit code to 1 if there are errors in its files.
 * Rejects with a user-facing Error if they are valid, but a server would not start with them.
 */
export async function check(settings: Settings, given: string | undefined, choice: ModuleChoice): Promise<void> {
  const { serviceAddresses } = settings;
  const directory = given ?? settings.configDir;
  const { configuration, errors, notices } = await (given === undefined
    ? loadDirectory(directory, settings)
    : loadConfiguration(directory, settings));
  if (errors.length > 0) {
    report(notices);
    report(errors);
    process.exitCode = 1;
    return;
  }
  const modules = chooseModules(choice, configuration, serviceAddresses);
  const isChosen = choice.only !== undefined || choice.demo === true;
  const context = noticeContextOf(modules, settings, { isChosen, directory });
  report([...notices, ...(await processNotices(configuration, context))]);
  const desk = await startDry({ ...settings, configDir: directory }, choice);
  await desk.close();
  const isLocal = (service: string) => modules.some((name) => name === service);
  const routes = listRoutes(configuration.mappings, { ...settings, isLocal });
  for (const line of [...routes, ...listVersions(configuration.versions)])
    print(process.stdout, `${line}\n`, colours.routes);
}

function report(found: readonly ConfigurationError[]): void {
  if (found.length > 0) print(process.stderr, `${formatErrors(found, process.cwd())}\n`, colours.errors);
}
