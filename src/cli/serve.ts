/** The `serve` command: runs the server until SIGINT or SIGTERM, and reloads the configuration on SIGHUP. */
import { flushCompileCache } from 'node:module';
import type { Writable } from 'node:stream';
import { demoDirectory, modulesNamedBy, packageVersion, watchSettingsFile } from '#config';
import type { CloseOptions, Frontdesk, Listeners, Listening, Setup } from '#server';
import { type ModuleChoice, type Settings, usesDemoData } from '#server/product';
import { isTravelModule, travelModules } from '#travel';
import { chooseLines } from './log/lines.ts';
import { type LogOutput, losslessOutput, openLog } from './log/output.ts';
import { onStopSignals } from './stop-signals.ts';
import { colours, print } from './terminal.ts';
import { countThreads, startThread } from './threads.ts';
import {
  collectBuffersEarly,
  collectWholeHeapRarely,
  createObjectsYoung,
  keepTicksFast,
  releaseStartupMemory,
} from './v8-tuning.ts';

export interface ServeOptions extends ModuleChoice {
  /** Set in a process that `split` has started, which reports its listeners to its parent and ends together with it. */
  readonly child?: boolean;
}

/** The message that a child sends to its parent when it is ready. */
export interface ChildReport {
  readonly listeners: Listeners;
  readonly demoUsers: readonly string[];
}

/** Rejects with a user-facing Error when the server cannot start. */
export async function serve(
  { configDir, threads, ...settings }: Settings,
  { only, demo, child = false }: ServeOptions,
): Promise<void> {
  collectBuffersEarly();
  createObjectsYoung();
  collectWholeHeapRarely();
  keepTicksFast();
  const base = child ? { module: only?.join() } : null;
  const { stdout } = process;
  const lossless = losslessOutput(stdout);
  const { logLevel, accessLog } = settings;
  const isTerminal = stdout.isTTY === true;
  const formatLine = chooseLines({ accessLog, isTerminal });
  const output = openLog(lossless, { level: logLevel, base, isTerminal, formatLine });
  const { logger } = output;
  process.once('exit', output.writeBlock);
  // Imported late, because the commands that only read a configuration do not need it.
  const { loadMainThread, resolveOptions } = await import('#server');
  const options = { only, demo: child ? demo : usesDemoData({ only, demo }), config: configDir, logger };
  const setup = {
    ...(await resolveOptions({ ...settings, ...options })),
    traceVariables: traceVariablesIn(process.env),
  };
  if (demo === true && setup.has('gateway')) warnWithoutDemo(setup);
  const count = child ? 1 : countThreads({ threads, demo: demo === true, setup });
  const desk = await (count === 1
    ? openAlone(setup, child)
    : (await loadMainThread()).openThreads(setup, { count, start: startThread, write: writeTo(lossless) }));
  const listeners = await desk.listen().catch(async (error) => {
    await desk.close();
    throw error;
  });
  // Earlier signals can be ignored, because the last step of the startup reads all changes that were made during it.
  // Writes the log as well, which contains the result, without waiting for a full block.
  process.on('SIGHUP', () => void desk.reload().then(output.writeBlock));
  // Comes before the server reports that it is ready, because a signal may follow immediately.
  const stop = stopOnSignal(desk, output, child);
  if (child) {
    process.once('disconnect', () => stop()).once('message', (options) => stop(options as CloseOptions));
    const report: ChildReport = { listeners, demoUsers: desk.demoUsers };
    // Fails if the parent was killed during the startup: it has disconnected already.
    process.send?.(report, undefined, undefined, (error) => error && stop());
  } else {
    await watchSettingsFile(configDir, (file) => logger.info({ file }, 'settings.env has changed: restart to use it'));
    print(process.stdout, banner(listeners, only, demo ? desk.demoUsers : [], count), colours.start);
  }
  // Now rather than at the exit: the cache then has only the code that a start needs, and a killed process has one too.
  setImmediate(flushCompileCache);
  releaseStartupMemory();
}

/** OpenTelemetry's own, which are no settings of ours. */
function traceVariablesIn(env: NodeJS.ProcessEnv): Readonly<Record<string, string>> {
  const found = Object.entries(env).filter(([name]) => name.startsWith('OTEL_'));
  return Object.fromEntries(found.map(([name, value = '']) => [name, value]));
}

/** Opens a server of one thread. Several claim their ports themselves. */
async function openAlone(setup: Setup, child: boolean): Promise<Frontdesk> {
  const { claimPorts, openFrontdesk } = await import('#server');
  await claimPorts(setup);
  // The parent of a child has chosen the modules of all its children by the records.
  return openFrontdesk(child ? { ...setup, areModulesChosen: false } : setup);
}

/** Clients reach the demo's hotels and cars only through records, and find only what demo.yaml has put into them. */
function warnWithoutDemo({ loaded: { configuration }, configDirectory, logger }: Setup): void {
  const remedy = `to see the demo, set CONFIG_DIR=${demoDirectory()}; to have it here too, copy what you need from there`;
  if (modulesNamedBy(configuration, travelModules).every(({ record }) => record.kind !== 'Mapping'))
    logger.warn(
      { configDirectory },
      `--demo has no effect, because no Mapping leads to a service of the demo: ${remedy}`,
    );
  else if (Object.keys(configuration.demo).length === 0)
    logger.warn({ configDirectory }, `the services of the demo have no data, because there is no demo.yaml: ${remedy}`);
}

/** Returns a function that resolves when the reader of `output` has taken a block of lines, or they cannot be written. */
function writeTo(output: Writable): (block: Uint8Array) => Promise<void> {
  return (block) => new Promise((resolve) => output.write(block, () => resolve()));
}

/** The first signal stops gracefully, the second immediately. Returns the function for a graceful stop. */
function stopOnSignal(
  desk: Pick<Frontdesk, 'close'>,
  output: LogOutput,
  silent: boolean,
): (options?: CloseOptions) => void {
  function onSignal(signal: NodeJS.Signals): void {
    stop();
    if (!silent) process.stdout.write(stopNotice(signal));
  }
  function stop(options?: CloseOptions): void {
    onStopSignals(() => process.exit(1), onSignal);
    desk.close(options).then(
      () => flushAndExit(output, 0),
      (error: Error) => {
        process.stderr.write(`frontdesk: ${error.message}\n`);
        return flushAndExit(output, 1);
      },
    );
  }
  onStopSignals(onSignal);
  return stop;
}

export function stopNotice(signal: NodeJS.Signals): string {
  return `\n${signal}: waiting for requests in flight to finish. A second signal stops immediately.\n`;
}

async function flushAndExit(output: LogOutput, code: number): Promise<void> {
  await output.flush();
  process.exit(code);
}

function banner(
  { gateway, gatewayTls, redirect, ratelimit, ratelimitHttp, auth, admin }: Listeners,
  only: ModuleChoice['only'],
  demoUsers: readonly string[],
  threads: number,
): string {
  const addresses = {
    [nameOfPort(only)]: gateway,
    'gateway (HTTPS)': gatewayTls,
    'redirect to HTTPS': redirect,
    'rate limits': ratelimit,
    'rate limits (HTTP)': ratelimitHttp,
    auth,
    admin,
  };
  const examples = gateway && auth && ratelimit && demoUsers.includes('demo') ? formatExamples(gateway.url) : '';
  return `${formatAddresses(addresses)}${threads > 1 ? `  on ${threads} threads\n` : ''}${examples}\n`;
}

/** Names the service at PORT: the gateway, or without it the modules that are served there. */
function nameOfPort(only: ModuleChoice['only']): string {
  if (only === undefined || only.includes('gateway')) return 'gateway';
  return only.filter(isTravelModule).join();
}

/** Lines such as `gateway  http://…`, below the sentence that programs wait for. */
export function formatAddresses(addresses: Readonly<Record<string, Listening | undefined>>): string {
  const open = Object.entries(addresses).flatMap(([name, at]) => (at ? [{ name, at }] : []));
  const width = Math.max(...open.map(({ name }) => name.length));
  const lines = open.map(({ name, at }) => `  ${name.padEnd(width)}  ${addressOf(at)}\n`);
  return `frontdesk ${packageVersion()} is ready.\n${lines.join('')}`;
}

/** A URL that works on this machine. Names the address as well if it is another, such as that of all networks. */
function addressOf({ url, host, port }: Listening): string {
  const listening = `${host.includes(':') ? `[${host}]` : host}:${port}`;
  return url.endsWith(`//${listening}`) ? url : `${url} (listens on ${listening})`;
}

export function formatExamples(url: string): string {
  return `
Demo users: demo (password demo) and guest (password guest). Try:
  curl -i -u demo:demo ${url}/v1/hotels/bookings/0b6f1c52-7d7e-4a57-9d43-5f0f6c1d2a01
  curl -i -u demo:demo -H 'x-gateway-test-allow: me' ${url}/v1/hotels
  curl -i ${url}/v2/messages/1
`;
}
