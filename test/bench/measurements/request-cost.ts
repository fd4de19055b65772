/**
 * Measures the CPU time of a request. The rows take turns under load, and the least disturbed rounds of each count. The
 * figure is the median of several starts.
 */
import { once } from 'node:events';
import { mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import { orderBody } from '../clients/booking-orders.ts';
import type { HttpLoadOrder } from '../clients/http-load.ts';
import { demoHeaders, untilReady } from '../clients/requests.ts';
import { type Child, root, startChild } from '../processes/child.ts';
import { onMeasuredCore } from '../processes/cores.ts';
import { type Row, type Started, startBackends, startOn } from '../processes/start-servers.ts';
import { missingRows, rows } from '../rows/request-rows.ts';
import type { TableRow } from '../table.ts';
import { requireSameResponse } from './same-response.ts';
import { measureUnderLoad, median, quantile, stopOrder, takeTurns } from './samples.ts';

/** The order in which V8 optimises functions differs from start to start, and changes the cost by up to a tenth. */
const starts = 3;
/** There are many short rounds, so that other work on the machine disturbs all rows equally. */
const roundsPerStart = 25;
const durationMs = 120;
/** Enough time to open all connections, including those to an upstream. */
const warmUpMs = 60;
/** Warms up V8 before the first round. In several rounds, because closing connections undoes part of the optimisation. */
const firstWarmUp = { requests: 30_000, roundMs: 500, roundsMax: 30 };

/** The cost of a call alone: a row with it minus a row without it, compared with the same difference of a peer. */
const limiterCall = {
  name: 'label-grpc',
  title: 'call the limiter over gRPC: frontdesk (label-grpc - chain)',
  rows: ['label-grpc', 'chain'],
  peers: ['http2-call', 'koa'],
  target: { ratioMax: 1.4, figureMax: 70 },
} as const;

/** Measures the rows with these names and their peers, because only ratios carry over to other machines. */
export async function measureRequests(names: readonly string[], directory: string): Promise<TableRow[]> {
  const all = withPeers(names);
  const costs = await costsOf(
    rows.filter(({ name }) => all.includes(name)),
    directory,
  );
  const unit = 'CPU us/request';
  const costOf = (name: string) => costs.get(name) ?? Number.NaN;
  const table: TableRow[] = rows.flatMap(({ name, title, peer = 'koa', target }) => {
    const figure = costs.get(name);
    if (figure === undefined) return [];
    return [{ name, title, figure, unit, peer, ratio: figure / costOf(peer), ...(target && { target }) }];
  });
  if (names.includes(limiterCall.name)) {
    const { rows: measured, peers, ...call } = limiterCall;
    const [figure, peer] = [measured, peers].map(([more, less]) => costOf(more) - costOf(less)) as [number, number];
    table.push({ ...call, figure, unit, peer: peers.join(' - '), ratio: figure / peer });
  }
  return [...table, ...missingRows.filter(({ name }) => names.includes(name))];
}

/** Adds the rows with which these rows are compared. */
function withPeers(names: readonly string[]): readonly string[] {
  const peers = rows.flatMap(({ name, peer = 'koa' }) => (names.includes(name) ? [peer] : []));
  const ofCall = names.includes(limiterCall.name) ? [...limiterCall.rows, ...limiterCall.peers] : [];
  const all = [...new Set([...names, ...peers, ...ofCall])];
  return all.length === names.length ? names : withPeers(all);
}

/** The CPU time of a request in microseconds, by row. */
async function costsOf(measured: readonly Row[], directory: string): Promise<ReadonlyMap<string, number>> {
  const backends = await startBackends(directory);
  const startLoad = () => startChild([join(root, 'test/bench/clients/http-load.ts')]);
  const loads: Loads = { usual: startLoad(), onMeasuredCore: await onMeasuredCore(startLoad) };
  const costs = measured.map((): number[] => []);
  try {
    for (let start = 0; start < starts; start += 1) {
      const rowServers = await startRows(measured, mkdtempSync(join(directory, 'start-')), backends);
      const samples = await samplesOf(rowServers, loads);
      for (const [index, ofRow] of samples.entries()) costs[index]?.push(quantile(ofRow, 0.25));
    }
    return new Map(measured.map(({ name }, index) => [name, median(costs[index] ?? [])]));
  } finally {
    await Promise.all([...Object.values(loads), backends].map((one) => one.stop()));
  }
}

/** The load generators. The one on the measured core is for cold caches, and idle otherwise. */
interface Loads {
  readonly usual: Child;
  readonly onMeasuredCore: Child;
}

/** The CPU time of a request in each round, by row. Stops the servers. */
async function samplesOf(rowServers: readonly RowServer[], loads: Loads): Promise<readonly number[][]> {
  try {
    for (const server of rowServers) await warmUp(server, loads.usual);
    return await takeTurns(rowServers, roundsPerStart, async (server) => {
      const { coldCaches = false } = server.row;
      const load = coldCaches ? loads.onMeasuredCore : loads.usual;
      const { cpuMicros, requests } = await measure(server, load, { warmUpMs, durationMs, coldCaches });
      return cpuMicros / requests;
    });
  } finally {
    const servers = new Set(rowServers.map(({ server }) => server));
    await Promise.all([...servers].map((server) => server.stop()));
  }
}

interface RowServer extends Started {
  readonly row: Row;
  readonly headers: Readonly<Record<string, string>>;
  /** As text. */
  readonly request: string;
  /** The number of orders so far. */
  orders: number;
}

/** Rows with the same start share a process, so that only their requests differ. */
async function startRows(
  measured: readonly Row[],
  directory: string,
  ports: Parameters<Row['start']>[2],
): Promise<RowServer[]> {
  const started = new Map<Row['start'], Started>();
  for (const { start, name } of measured)
    if (!started.has(start)) started.set(start, await startOn(start, directory, name, ports));
  const servers = await Promise.all(
    measured.map(async (row) => {
      const { port, server } = started.get(row.start) as Started;
      const { authorization, accept } = demoHeaders;
      const headers = { host: `127.0.0.1:${port}`, authorization, accept, ...row.headers };
      await untilReady(port, row.path, headers);
      return { port, server, row, headers, request: requestOf(row, headers), orders: 0 };
    }),
  );
  for (const one of servers) {
    const peer = servers.find(({ row }) => row.name === one.row.peer);
    if (one.row.matchesPeer && peer !== undefined) await requireSameResponse(one, peer);
  }
  return servers;
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

async function warmUp(server: RowServer, load: Child): Promise<void> {
  const { requests, roundMs, roundsMax } = firstWarmUp;
  let sent = 0;
  for (let round = 0; round < roundsMax && sent < requests; round += 1)
    sent += (await measure(server, load, { warmUpMs: 0, durationMs: roundMs, coldCaches: false })).requests;
}

type Round = Required<Pick<HttpLoadOrder, 'warmUpMs' | 'durationMs' | 'coldCaches'>>;

async function measure(rowServer: RowServer, load: Child, round: Round) {
  const { server, port, request, row, orders } = rowServer;
  const order: HttpLoadOrder = {
    ...round,
    port,
    request,
    ...(row.orders && { ordersFrom: orders }),
    ...(row.status && { status: row.status }),
  };
  const measured = await measureUnderLoad(server, load, order);
  const stopped = once(load.process, 'message');
  load.process.send(stopOrder);
  const [{ sent }] = (await stopped) as [{ readonly sent: number }];
  rowServer.orders += sent;
  return measured;
}
