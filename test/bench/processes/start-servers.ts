/** Starts the servers under test, and those that they call. */
import { join } from 'node:path';
import { freePort } from '../../support/programs/free-port.ts';
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
  readonly start: (port: number, directory: string, backends: Backends) => Child | Promise<Child>;
}

/** The ports of the processes that the servers under test call. */
export interface Backends {
  readonly upstreamPort: number;
  readonly authPort: number;
  readonly ratelimitPort: number;
}

/** Starts frontdesk with one kind of configuration. The log level `error` turns the access log off. */
export function frontdeskWith(
  kind: ConfigurationKind,
  logLevel: string,
  env: Readonly<Record<string, string>> = {},
): Row['start'] {
  return (port, directory, backends) => {
    const configDir = writeConfiguration(directory, kind, backends);
    const settings = { PORT: String(port), LOG_LEVEL: logLevel, ...env };
    return startFrontdesk(directory, settings, { modules: hotelModules, configDir });
  };
}

/** Starts a program in the folder `servers`. */
export function benchServer(name: string): Row['start'] {
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

export interface FrontdeskOptions {
  /** The modules to start, separated by commas. @default all */
  readonly modules?: string;
  /** @default the configuration of the demo */
  readonly configDir?: string;
}

/** The modules that a request to the hotel module passes through. */
export const hotelModules = 'gateway,auth,ratelimit,hotel';

/** Runs the built command line like `npm start`, with a separate database and output. */
export function startFrontdesk(
  directory: string,
  env: Readonly<Record<string, string>>,
  { modules, configDir = join(root, 'config') }: FrontdeskOptions = {},
): Child {
  return startChild({
    args: [join(root, 'dist/main.js'), 'serve', '--demo', ...(modules === undefined ? [] : ['--only', modules])],
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

/** Starts the upstream, and one process with the auth service and the limiter. */
export async function startBackends(directory: string): Promise<Backends & { readonly stop: () => Promise<void> }> {
  const [upstreamPort, ratelimitPort, authPort] = [await freePort(), await freePort(), await freePort()];
  const backends = { upstreamPort, ratelimitPort, authPort };
  const upstream = await benchServer('upstream')(upstreamPort, directory, backends);
  const authAndLimiter = startFrontdesk(
    directory,
    { RATELIMIT_PORT: String(ratelimitPort), AUTH_PORT: String(authPort), LOG_LEVEL: 'error' },
    { modules: 'auth,ratelimit', configDir: writeConfiguration(directory, 'in-process', backends) },
  );
  return {
    ...backends,
    async stop() {
      await Promise.all([upstream.stop(), authAndLimiter.stop()]);
    },
  };
}
