/** Runs the server until a signal: log output, banner, SIGINT and SIGTERM stop, SIGHUP re-reads the configuration. */
import { setFlagsFromString } from 'node:v8';
import { isDemoModule, type ModuleChoice, packageVersion, type Settings } from '#config';
import type { CloseOptions, Frontdesk, Listeners } from '#server';
import { wholeOutput } from './file-output.ts';
import { type LogOutput, openLog } from './log-output.ts';
import { takeStopSignals } from './stop-signals.ts';
import { colours, print } from './terminal.ts';

export interface ServeOptions extends ModuleChoice {
  /** One of several processes that `split` has started: sends its listeners to the parent, and ends with it. */
  readonly child?: boolean;
}

/** What a child sends to its parent when it listens. */
export interface ChildReport {
  readonly listeners: Listeners;
  readonly demoUsers: readonly string[];
}

/** Rejects with an Error fit for a terminal when the server cannot start. */
export async function serve(
  { configDir, ...settings }: Settings,
  { only, demo, child = false }: ServeOptions,
): Promise<void> {
  collectBuffersEarly();
  const base = child ? { module: only?.join() } : null;
  const { stdout } = process;
  const output = openLog(wholeOutput(stdout), { level: settings.logLevel, base, isTerminal: stdout.isTTY });
  const { logger } = output;
  process.once('exit', output.pass);
  // Here, because the commands that only read a configuration do without.
  const { openFrontdesk, resolveOptions } = await import('#server');
  const options = { only, demo: demo ?? (!child && only?.some(isDemoModule)), config: configDir, logger };
  const desk = await openFrontdesk(await resolveOptions({ ...settings, ...options }));
  const listeners = await desk.listen().catch(async (error) => {
    await desk.close();
    throw error;
  });
  // What changed during the start has been read at its end.
  process.on('SIGHUP', () => void reload(desk, output));
  // Before it says that it is ready: a signal may come as soon as it has.
  const stop = stopOnSignal(desk, output, child);
  if (child) {
    process.once('disconnect', () => stop()).once('message', (options) => stop(options as CloseOptions));
    const report: ChildReport = { listeners, demoUsers: desk.demoUsers };
    process.send?.(report);
  } else print(process.stdout, banner(listeners, only, demo ? desk.demoUsers : []), colours.start);
}

/**
 * Each chunk of a body is a buffer beside V8's heap. By default V8 collects no garbage before 64 MB of them have gathered,
 * and then in the whole heap; now it collects young objects alone after each 8 MB. This saves half the CPU time of a
 * large body, and 50 MB. The heap keeps its room for young objects: only threads that start later get less. Node 26
 * has no such flag.
 */
function collectBuffersEarly(): void {
  if (process.versions.node.startsWith('24.')) setFlagsFromString('--scavenger-max-new-space-capacity-mb=2');
}

/** The first signal stops gracefully, the second at once. Returns the function that the first one calls. */
function stopOnSignal(desk: Frontdesk, output: LogOutput, silent: boolean): (options?: CloseOptions) => void {
  function onSignal(signal: NodeJS.Signals): void {
    stop();
    if (!silent) process.stdout.write(`\n${signal}: requests in flight finish, then it stops. Again stops at once.\n`);
  }
  function stop(options?: CloseOptions): void {
    takeStopSignals(() => process.exit(1), onSignal);
    desk.close(options).then(
      () => end(output, 0),
      (error: Error) => {
        process.stderr.write(`frontdesk: ${error.message}\n`);
        return end(output, 1);
      },
    );
  }
  takeStopSignals(onSignal);
  return stop;
}

async function end(output: LogOutput, code: number): Promise<void> {
  await output.flush();
  process.exit(code);
}

/** The result is in the log, which is passed on at once. */
async function reload(desk: Frontdesk, output: LogOutput): Promise<void> {
  await desk.reload();
  output.pass();
}

function banner(
  { gateway, ratelimit, ratelimitHttp, auth, admin }: Listeners,
  only: ModuleChoice['only'],
  demoUsers: readonly string[],
): string {
  const addresses = { [nameOfPort(only)]: gateway, 'rate limits': ratelimit, 'over HTTP': ratelimitHttp, auth, admin };
  const examples = gateway && auth && ratelimit && demoUsers.includes('demo') ? formatExamples(gateway.url) : '';
  return `${formatAddresses(addresses)}${examples}\n`;
}

/** Names what listens at PORT: the gateway, or without it the modules whose apps answer there. */
function nameOfPort(only: ModuleChoice['only']): string {
  if (only === undefined || only.includes('gateway')) return 'gateway';
  return only.filter(isDemoModule).join();
}

/** `gateway  http://…` a line, below the sentence that waiting programs look for. */
export function formatAddresses(addresses: Readonly<Record<string, { readonly url: string } | undefined>>): string {
  const lines = Object.entries(addresses).flatMap(([name, at]) => (at ? [`  ${name.padEnd(12)} ${at.url}\n`] : []));
  return `frontdesk ${packageVersion()} is ready.\n${lines.join('')}`;
}

export function formatExamples(url: string): string {
  return `
Demo users: demo (password demo) and guest (password guest). Try:
  curl -i -u demo:demo ${url}/v1/hotels/bookings/0b6f1c52-7d7e-4a57-9d43-5f0f6c1d2a01
  curl -i -u demo:demo -H 'x-gateway-test-allow: me' ${url}/v1/hotels
  curl -i ${url}/v2/messages/1
`;
}
