/** Starts the servers under test. */
import { join } from 'node:path';
import { freePort } from '../support/programs/free-port.ts';
import { type Child, root, startChild } from './child.ts';
import { type ConfigurationKind, writeConfiguration } from './configuration.ts';

export interface Row {
  /** The name on the command line. */
  readonly name: string;
  readonly title: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Makes the request a POST with a body of this size. @default none */
  readonly bodyBytes?: number;
  /** Makes the request a POST with this body. @default none */
  readonly json?: string;
  /** @default 200, or 201 for an order */
  readonly status?: number;
  /** Makes each request a POST of a different order. @default false */
  readonly orders?: boolean;
  /** Starts the server. Each row has its own `directory`. */
  readonly start: (port: number, directory: string, parts: Parts) => Child | Promise<Child>;
}

/** The ports of the processes that the servers under test use. */
export interface Parts {
  readonly upstreamPort: number;
  readonly authPort: number;
  readonly ratelimitPort: number;
}

/** frontdesk with one kind of configuration; the log level `error` turns the access log off. */
export function frontdeskOf(
  kind: ConfigurationKind,
  logLevel: string,
  env: Readonly<Record<string, string>> = {},
): Row['start'] {
  return (port, directory, parts) => {
    const configDir = writeConfiguration(directory, kind, parts);
    const own = { PORT: String(port), LOG_LEVEL: logLevel, ...env };
    return startFrontdesk(directory, own, ['--only', 'gateway,auth,ratelimit,hotel'], { configDir });
  };
}

export function ownServer(name: string): Row['start'] {
  return (port, directory, { upstreamPort, ratelimitPort }) =>
    startChild({
      args: [join(root, 'test/bench/servers', `${name}.ts`)],
      env: {
        PORT: String(port),
        UPSTREAM: `http://127.0.0.1:${upstreamPort}`,
        RATELIMIT: String(ratelimitPort),
        DATABASE: join(directory, 'peer.db'),
      },
    });
}

/** Runs the built command line like `npm start`, with a separate database and output. */
export function startFrontdesk(
  directory: string,
  env: Readonly<Record<string, string>>,
  args: readonly string[] = [],
  { configDir = join(root, 'config') }: { readonly configDir?: string } = {},
): Child {
  return startChild({
    args: [join(root, 'dist/main.js'), 'serve', '--demo', ...args],
    env: {
      PORT: '0',
      AUTH_PORT: '0',
      RATELIMIT_PORT: '0',
      CONFIG_DIR: configDir,
      DATABASE_URL: `sqlite:${join(directory, 'bench.db')}`,
      MALLOC_TRIM_THRESHOLD_: '131072',
      ...env,
    },
    outputFile: join(directory, 'output.log'),
  });
}

/** Starts the processes that the rows need. */
export async function startParts(directory: string): Promise<Parts & { readonly stop: () => Promise<void> }> {
  const [upstreamPort, ratelimitPort, authPort] = [await freePort(), await freePort(), await freePort()];
  const parts = { upstreamPort, ratelimitPort, authPort };
  const upstream = await ownServer('upstream')(upstreamPort, directory, parts);
  const asked = startFrontdesk(
    directory,
    { RATELIMIT_PORT: String(ratelimitPort), AUTH_PORT: String(authPort), LOG_LEVEL: 'error' },
    ['--only', 'auth,ratelimit'],
    { configDir: writeConfiguration(directory, 'in-process', parts) },
  );
  return {
    ...parts,
    async stop() {
      await Promise.all([upstream.stop(), asked.stop()]);
    },
  };
}
