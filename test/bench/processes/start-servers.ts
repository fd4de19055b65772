/** Starts the servers under test, and those that they call. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { freePort } from '../../support/programs/free-port.ts';
import type { Target } from '../table.ts';
import { type Child, type MeasuredServer, root, startChild } from './child.ts';
import { type ConfigurationKind, type Ports, writeConfiguration } from './configuration.ts';
import { onMeasuredCore } from './cores.ts';

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
  /** Sends one request at a time, and walks the memory of a neighbour on the same core before each. @default false */
  readonly coldCaches?: boolean;
  /** Makes each request a POST of a different order. @default false */
  readonly orders?: boolean;
  readonly start: Start;
  /** The row that it is compared with. @default bare Koa */
  readonly peer?: string;
  /** Fails the benchmark unless its response and the peer's have the same headers and fields. @default false */
  readonly matchesPeer?: boolean;
  readonly target?: Target;
}

/** Starts a server. Each has its own `directory`. */
export type Start = (port: number, directory: string, ports: Ports) => MeasuredServer | Promise<MeasuredServer>;

export interface Started {
  readonly port: number;
  readonly server: MeasuredServer;
}

/** Starts a server under test on a free port, with the directory `name` in `parent`. Starts must not overlap. */
export async function startOn(start: Start, parent: string, name: string, ports: Ports): Promise<Started> {
  const directory = join(parent, name);
  mkdirSync(directory);
  const port = await freePort();
  return { port, server: await onMeasuredCore(() => start(port, directory, ports)) };
}

/** Starts frontdesk with one kind of configuration. The log level `error` turns the access log off. */
export function frontdeskWith(kind: ConfigurationKind, env: Readonly<Record<string, string>> = {}): Start {
  return (port, directory, ports) => {
    const configDir = writeConfiguration(directory, kind, ports);
    return startFrontdesk(directory, { PORT: String(port), CONFIG_DIR: configDir, ...env });
  };
}

/** Starts a program in the folder `servers`. */
export function benchServer(name: string, env: Readonly<Record<string, string>> = {}): Start {
  return (port, directory, { upstreamPort, ratelimitPort }) =>
    startChild(
      [join(root, 'test/bench/servers', `${name}.ts`)],
      {
        PORT: String(port),
        UPSTREAM: `http://127.0.0.1:${upstreamPort}`,
        RATELIMIT: String(ratelimitPort),
        DATABASE: join(directory, 'peer.db'),
        ...env,
      },
      join(directory, 'output.log'),
    );
}

/** Runs the built command line like `npm start`, with a separate database and output, and without the access log. */
export function startFrontdesk(
  directory: string,
  env: Readonly<Record<string, string>>,
  /** By default those that a request to the hotel module passes through. */
  modules: readonly string[] = ['gateway', 'auth', 'ratelimit', 'hotel'],
): Child {
  const only = modules.length === 0 ? [] : ['--only', modules.join()];
  const settings = {
    PORT: '0',
    AUTH_PORT: '0',
    RATELIMIT_PORT: '0',
    DATABASE_URL: `sqlite:${join(directory, 'bench.db')}`,
    LOG_LEVEL: 'error',
    THREADS: '1',
    MALLOC_TRIM_THRESHOLD_: '131072',
    ...env,
  };
  return startChild([join(root, 'dist/main.js'), 'serve', '--demo', ...only], settings, join(directory, 'output.log'));
}

/** Starts the upstream, and one process with the auth service and the limiter. */
export async function startBackends(directory: string): Promise<Ports & { readonly stop: () => Promise<void> }> {
  const ports = { upstreamPort: await freePort(), ratelimitPort: await freePort(), authPort: await freePort() };
  const upstream = await benchServer('upstream')(ports.upstreamPort, directory, ports);
  const env = {
    RATELIMIT_PORT: String(ports.ratelimitPort),
    AUTH_PORT: String(ports.authPort),
    CONFIG_DIR: writeConfiguration(directory, 'in-process', ports),
  };
  const authAndLimiter = startFrontdesk(directory, env, ['auth', 'ratelimit']);
  return {
    ...ports,
    async stop() {
      await Promise.all([upstream.stop(), authAndLimiter.stop()]);
    },
  };
}
