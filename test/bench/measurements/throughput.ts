/**
 * Measures how many requests a second each gateway forwards, and the latency that 99 % of them do not exceed. The
 * gateways, the upstream and the load share all cores of the machine, so only comparisons within one run mean anything.
 */
import { once } from 'node:events';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { freePort } from '../../support/programs/free-port.ts';
import { isInstalled } from '../../support/programs/installed.ts';
import { latencyAt } from '../clients/latencies.ts';
import type { LatencyLoadOrder, LatencyReport } from '../clients/latency-load.ts';
import { demoHeaders, untilReady } from '../clients/requests.ts';
import { type Child, root, startChild } from '../processes/child.ts';
import { coreCount, onAllCores } from '../processes/cores.ts';
import { gateways, type MeasuredGateway, startUpstream } from '../rows/gateways.ts';
import { failureRows, type MeasuredRow } from '../table.ts';
import { takeTurns } from './samples.ts';

const connectionCounts = [64, 1000];
/** Other work on the machine only slows a round down, so the best one counts. */
const rounds = 3;
/** Enough time to open all connections, including those to the upstream, and to respond to the first requests. */
const warmUpMs = 2500;
const durationMs = 1200;
/** Warms up V8, and fills pools of connections. */
const firstWarmUpMs = 3000;
const loadProcesses = Math.max(1, Math.floor(coreCount / 2));
const path = '/proxied/1024';

export async function measureThroughput(parent: string): Promise<MeasuredRow[]> {
  const directory = join(parent, 'throughput');
  mkdirSync(directory);
  return await onAllCores(async () => {
    const stops: (() => Promise<void>)[] = [];
    try {
      const upstreamPort = await freePort();
      const upstream = await startUpstream(upstreamPort, directory);
      stops.push(upstream.stop);
      const load = Array.from({ length: loadProcesses }, startLoad);
      stops.push(...load.map(({ stop }) => stop));
      const started: Started[] = [];
      for (const gateway of gateways.filter(isInstalledHere)) {
        const { stop, ...rest } = await startGateway(gateway, directory, upstreamPort);
        stops.push(stop);
        started.push(rest);
      }
      return [
        { title: 'cores, which the gateway shares with the load and the upstream', figure: coreCount, unit: 'cores' },
        ...(await measureAll(started, load)),
        ...gateways.filter((gateway) => !isInstalledHere(gateway)).map(missingRow),
      ];
    } finally {
      await Promise.all(stops.map((stop) => stop()));
    }
  });
}

interface Started {
  readonly gateway: MeasuredGateway;
  readonly port: number;
}

async function startGateway(gateway: MeasuredGateway, parent: string, upstreamPort: number) {
  const directory = join(parent, gateway.title.replaceAll(/\W+/g, '-'));
  mkdirSync(directory);
  const port = await freePort();
  // These gateways call no limiter or auth service.
  const { stop } = await gateway.start(port, directory, { upstreamPort, ratelimitPort: 9, authPort: 9 });
  await untilReady(port, path, demoHeaders);
  return { gateway, port, stop };
}

function startLoad(): Child {
  return startChild([join(root, 'test/bench/clients/latency-load.ts')]);
}

function isInstalledHere({ program }: MeasuredGateway): boolean {
  return program === undefined || isInstalled(program);
}

function missingRow({ title, program }: MeasuredGateway): MeasuredRow {
  return { title, figure: undefined, unit: '', missing: `not installed: ${program} is not on the PATH` };
}

async function measureAll(started: readonly Started[], load: readonly Child[]): Promise<MeasuredRow[]> {
  for (const { port } of started)
    await sendLoad(load, { port, connections: 64, warmUpMs: 0, durationMs: firstWarmUpMs });
  const cases = connectionCounts.flatMap((connections) => started.map((one) => ({ ...one, connections })));
  const samples = await takeTurns(cases, rounds, ({ port, connections }) =>
    sendLoad(load, { port, connections, warmUpMs, durationMs }),
  );
  const measured = cases.map((one, index) => ({ ...one, reports: samples[index] ?? [] }));
  return measured.flatMap(({ gateway, connections, reports }) => {
    const title = `${connections} connections: ${gateway.title}`;
    const best = bestOf(reports);
    const figure = perSecond(best);
    // frontdesk is the first of those that do the same.
    const own = measured.find((one) => one.connections === connections && one.gateway.hasAuth === gateway.hasAuth);
    const failures = sumOf(reports.flatMap((report) => report.failures));
    return [
      {
        title,
        figure: Math.round(figure),
        unit: 'requests/s',
        peer: 'frontdesk',
        ratio: figure / perSecond(bestOf(own?.reports ?? [])),
      },
      {
        title: `${title}, 99 % within`,
        figure: latencyAt(best?.counts ?? [], 0.99),
        unit: 'ms',
      },
      ...(failures.size === 0 ? [] : failureRows(failures).map((row) => ({ ...row, title: `${title}, ${row.title}` }))),
    ];
  });
}

function sumOf(failures: LatencyReport['failures']): ReadonlyMap<string, number> {
  const sums = new Map<string, number>();
  for (const [reason, count] of failures) sums.set(reason, (sums.get(reason) ?? 0) + count);
  return sums;
}

function bestOf(reports: readonly LatencyReport[]): LatencyReport | undefined {
  return reports.toSorted((a, b) => b.requests - a.requests)[0];
}

function perSecond(report: LatencyReport | undefined): number {
  return (report?.requests ?? Number.NaN) / (durationMs / 1000);
}

/** Divides the connections among the load processes, and adds up their reports. */
async function sendLoad(load: readonly Child[], order: Omit<LatencyLoadOrder, 'request'>): Promise<LatencyReport> {
  const reports = await Promise.all(
    load.map(async ({ process }, index) => {
      const reported = once(process, 'message');
      const connections = Math.floor((order.connections + index) / load.length);
      process.send({ ...order, connections, request: requestTo(order.port) });
      const [report] = (await reported) as [LatencyReport];
      return report;
    }),
  );
  return reports.reduce((sum, report) => ({
    requests: sum.requests + report.requests,
    counts: sum.counts.map((count, bucket) => count + (report.counts[bucket] ?? 0)),
    failures: [...sum.failures, ...report.failures],
  }));
}

function requestTo(port: number): string {
  const headers = { host: `127.0.0.1:${port}`, ...demoHeaders };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `GET ${path} HTTP/1.1\r\n${lines.join('')}\r\n`;
}
