/** Measures the CPU time of a request. The rows take turns under load, and the least disturbed rounds of each count. */
import { on } from 'node:events';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { freePort } from '../../support/programs/free-port.ts';
import { orderBody } from '../clients/booking-orders.ts';
import { type LoadOrder, type LoadReport, stopOrder } from '../clients/http-load.ts';
import { demoHeaders, untilReady } from '../clients/requests.ts';
import { type Child, root, startChild } from '../processes/child.ts';
import { type Backends, type Row, startBackends } from '../processes/start-servers.ts';
import { quantile } from './quantile.ts';

export interface Figures {
  readonly row: Row;
  readonly cpuMicrosPerRequest: number;
  readonly requestsPerSecond: number;
}

/** There are many short rounds, so that other work on the machine disturbs all rows equally. */
const rounds = 25;
const durationMs = 160;
/** Enough time to open all connections, including those to an upstream. */
const warmUpMs = 100;
/** Warms up V8 before the first round. In several rounds, because closing connections undoes part of the optimisation. */
const firstWarmUp = { requests: 30_000, roundMs: 500, roundsMax: 30 };

export async function measureRows(rows: readonly Row[], directory: string): Promise<Figures[]> {
  const backends = await startBackends(directory);
  const load = startChild({ args: [join(root, 'test/bench/clients/http-load.ts')], env: {} });
  const servers = await startRows(rows, directory, backends);
  try {
    for (const server of servers) await warmUp(server, load);
    const samples: Sample[][] = servers.map(() => []);
    for (let round = 0; round < rounds; round += 1) {
      for (const [index, server] of servers.entries()) {
        samples[index]?.push(await measure(server, load, warmUpMs, durationMs));
      }
    }
    return rows.map((row, index) => ({ row, ...leastDisturbed(samples[index] ?? []) }));
  } finally {
    const children = new Set(servers.map(({ child }) => child));
    await Promise.all([...[...children].map((child) => child.stop()), load.stop(), backends.stop()]);
  }
}

interface Server {
  readonly child: Child;
  readonly port: number;
  readonly request: string;
  readonly status: number | undefined;
  /** The number of orders so far; undefined if the row sends none. */
  orders: number | undefined;
}

/** Rows with the same start share a process, so that only their requests differ. */
async function startRows(rows: readonly Row[], parent: string, backends: Backends): Promise<Server[]> {
  const started = new Map<Row['start'], Promise<Started>>();
  const start = async ({ name, start }: Row): Promise<Started> => {
    const directory = join(parent, name);
    mkdirSync(directory);
    const port = await freePort();
    return { port, child: await start(port, directory, backends) };
  };
  return await Promise.all(
    rows.map(async (row) => {
      const starting = started.get(row.start) ?? start(row);
      started.set(row.start, starting);
      return await serverOf(row, await starting);
    }),
  );
}

type Started = Pick<Server, 'child' | 'port'>;

async function serverOf(row: Row, { child, port }: Started): Promise<Server> {
  const { authorization, accept } = demoHeaders;
  const headers = { host: `127.0.0.1:${port}`, authorization, accept, ...row.headers };
  await untilReady(port, row.path, headers);
  return { child, port, request: requestOf(row, headers), status: row.status, orders: row.orders ? 0 : undefined };
}

function requestOf(row: Row, headers: Readonly<Record<string, string>>): string {
  const { path, bodyBytes, json, orders } = row;
  const framing = framingOf(row);
  const lines = Object.entries({ ...headers, ...framing }).map(([name, value]) => `${name}: ${value}\r\n`);
  const method = bodyBytes === undefined && json === undefined && !orders ? 'GET' : 'POST';
  return `${method} ${path} HTTP/1.1\r\n${lines.join('')}\r\n${json ?? 'x'.repeat(bodyBytes ?? 0)}`;
}

function framingOf({ bodyBytes, json, orders }: Row): Readonly<Record<string, string>> {
  const text = orders ? orderBody(0) : json;
  if (text !== undefined) return { 'content-type': 'application/json', 'content-length': String(text.length) };
  return bodyBytes === undefined ? {} : { 'content-type': 'text/plain', 'content-length': String(bodyBytes) };
}

async function warmUp(server: Server, load: Child): Promise<void> {
  const { requests, roundMs, roundsMax } = firstWarmUp;
  let sent = 0;
  for (let round = 0; round < roundsMax && sent < requests; round += 1) {
    const { requestsPerSecond } = await measure(server, load, 0, roundMs);
    sent += (requestsPerSecond * roundMs) / 1000;
  }
}

type Sample = Omit<Figures, 'row'>;

async function measure(server: Server, load: Child, warmUpMs: number, durationMs: number): Promise<Sample> {
  const { child, port, request, status } = server;
  const reports = on(load.process, 'message');
  const orders = server.orders === undefined ? {} : { ordersFrom: server.orders };
  const expected = status === undefined ? {} : { status };
  const order: LoadOrder = { port, request, warmUpMs, durationMs, ...orders, ...expected };
  load.process.send(order);
  await reports.next();
  const before = await child.usage();
  const [ended] = (await reports.next()).value as [LoadReport];
  const after = await child.usage();
  load.process.send(stopOrder);
  const [stopped] = (await reports.next()).value as [LoadReport];
  await reports.return?.();
  const { requests, ms } = ended.event === 'ended' ? ended : { requests: 0, ms: 0 };
  if (server.orders !== undefined && stopped.event === 'stopped') server.orders += stopped.sent;
  return {
    cpuMicrosPerRequest: (after.cpuMicros - before.cpuMicros) / requests,
    requestsPerSecond: (requests * 1000) / ms,
  };
}

function leastDisturbed(samples: readonly Sample[]): Sample {
  const figures = (name: keyof Sample) => samples.map((sample) => sample[name]);
  return {
    cpuMicrosPerRequest: quantile(figures('cpuMicrosPerRequest'), 0.25),
    requestsPerSecond: quantile(figures('requestsPerSecond'), 0.75),
  };
}
