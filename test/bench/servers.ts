/** The servers under test: each row of the table, and how it is started. */

import { join } from 'node:path';
import { freePort } from '../support/free-port.ts';
import { booking } from './booking.ts';
import { type Child, root, startChild } from './child.ts';
import { type ConfigurationKind, writeConfiguration } from './configuration.ts';

export interface Row {
  /** For the command line. */
  readonly name: string;
  readonly title: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Starts it; `directory` is the row's own. */
  readonly start: (port: number, directory: string, parts: Parts) => Child;
}

/** What runs beside the servers under test. */
export interface Parts {
  readonly upstreamPort: number;
  readonly ratelimitPort: number;
}

const bookingPath = `/v1/hotels/bookings/${booking.id}`;
const label = { 'x-gateway-test-allow': 'bench' };

export const rows: readonly Row[] = [
  { name: 'node-http', title: 'bare node:http', path: '/', start: ownServer('node-http') },
  { name: 'koa', title: 'bare Koa', path: '/', start: ownServer('koa') },
  ...withLogOffAndOn({ name: 'chain', title: 'frontdesk, a booking', path: bookingPath, kind: 'in-process' }),
  ...withLogOffAndOn({
    name: 'label',
    title: '… with a label, limiter in-process',
    path: bookingPath,
    headers: label,
    kind: 'in-process',
  }),
  ...withLogOffAndOn({
    name: 'label-grpc',
    title: '… with a label, limiter over gRPC',
    path: bookingPath,
    headers: label,
    kind: 'grpc',
  }),
  { name: 'http-proxy', title: '@fastify/http-proxy', path: '/proxied/x', start: ownServer('http-proxy') },
  ...withLogOffAndOn({ name: 'proxy', title: 'frontdesk, proxied', path: '/proxied/x', kind: 'proxy' }),
];

interface FrontdeskRow extends Omit<Row, 'start'> {
  readonly kind: ConfigurationKind;
}

function withLogOffAndOn({ kind, ...row }: FrontdeskRow): Row[] {
  const startAt =
    (logLevel: string) =>
    (port: number, directory: string, parts: Parts): Child =>
      startFrontdesk(
        directory,
        { PORT: String(port), LOG_LEVEL: logLevel },
        ['--only', 'gateway,auth,ratelimit,hotel'],
        {
          configDir: writeConfiguration(directory, kind, parts),
        },
      );
  return [
    { ...row, start: startAt('error') },
    { ...row, name: `${row.name}-log`, title: `${row.title}, access log`, start: startAt('info') },
  ];
}

function ownServer(name: string): Row['start'] {
  return (port, _directory, { upstreamPort }) =>
    startChild({
      args: ['--import', 'tsx', join(root, 'test/bench/servers', `${name}.ts`)],
      env: { PORT: String(port), UPSTREAM: `http://127.0.0.1:${upstreamPort}` },
    });
}

/** The built command line, as `npm start` runs it, on a database and with an output of its own. */
export function startFrontdesk(
  directory: string,
  env: Readonly<Record<string, string>>,
  args: readonly string[] = [],
  { configDir = join(root, 'config') }: { readonly configDir?: string } = {},
): Child {
  return startChild({
    args: [join(root, 'dist/main.js'), 'serve', ...args],
    env: {
      PORT: '0',
      AUTH_PORT: '0',
      RATELIMIT_PORT: '0',
      CONFIG_DIR: configDir,
      DATABASE_URL: `sqlite:${join(directory, 'bench.db')}`,
      ...env,
    },
    outputFile: join(directory, 'output.log'),
  });
}

/** The processes that the rows lean on. */
export async function startParts(directory: string): Promise<Parts & { readonly stop: () => Promise<void> }> {
  const [upstreamPort, ratelimitPort] = [await freePort(), await freePort()];
  const parts = { upstreamPort, ratelimitPort };
  const upstream = ownServer('node-http')(upstreamPort, directory, parts);
  const ratelimit = startFrontdesk(
    directory,
    { RATELIMIT_PORT: String(ratelimitPort), LOG_LEVEL: 'error' },
    ['--only', 'ratelimit'],
    { configDir: writeConfiguration(directory, 'in-process', parts) },
  );
  return {
    ...parts,
    async stop() {
      await Promise.all([upstream.stop(), ratelimit.stop()]);
    },
  };
}
