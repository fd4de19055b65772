/** Measures the CPU time of a request over HTTP/2 beside HTTP/1.1, and of a unary gRPC call, in turns under load. */
import { once } from 'node:events';
import { mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { envoyConfiguration } from '../../support/programs/envoy-configuration.ts';
import { isInstalled } from '../../support/programs/installed.ts';
import { accepts, envoy } from '../../support/programs/proxy-process.ts';
import { type Certificate, makeCertificate } from '../../support/wire/certificate.ts';
import type { Http2LoadOrder } from '../clients/http2-load.ts';
import { type Child, root, startChild } from '../processes/child.ts';
import { startMeasured } from '../processes/other-proxies.ts';
import {
  benchServer,
  frontdeskWith,
  type Start,
  type Started,
  startBackends,
  startOn,
} from '../processes/start-servers.ts';
import type { MeasuredRow, Target } from '../table.ts';
import { measureUnderLoad, median, quantile, stopOrder, takeTurns } from './samples.ts';

interface Row {
  readonly title: string;
  readonly request: Pick<Http2LoadOrder, 'protocol' | 'path' | 'headers' | 'message'>;
  readonly start: Start;
  /** The title of the row that it is compared with. */
  readonly peer?: string;
  readonly target?: Target;
}

const starts = 3;
const rounds = 15;
const durationMs = 200;
const warmUpMs = 100;
const firstWarmUpMs = 5000;

export async function measureHttp2(directory: string): Promise<MeasuredRow[]> {
  const certificate = await makeCertificate(directory, 'IP:127.0.0.1');
  if (certificate === undefined) throw new Error('bench: http2 needs openssl');
  const backends = await startBackends(directory);
  const service = await startOn(benchServer('grpc-service'), directory, 'grpc-service', backends);
  const rows = [...requestRows(certificate), ...callRows()];
  const load = startChild([join(root, 'test/bench/clients/http2-load.ts')]);
  const costs = rows.map((): number[] => []);
  try {
    for (let start = 0; start < starts; start += 1) {
      const samples = await samplesOf(rows, load, mkdtempSync(join(directory, 'http2-')), (row) =>
        row.request.message === undefined ? backends : { ...backends, upstreamPort: service.port },
      );
      for (const [index, ofRow] of samples.entries()) costs[index]?.push(quantile(ofRow, 0.25));
    }
  } finally {
    await Promise.all([load, service.server, backends].map((one) => one.stop()));
  }
  const figures = new Map(rows.map(({ title }, index) => [title, median(costs[index] ?? [])]));
  return rows.map(({ title, peer, target }) => {
    const figure = figures.get(title);
    const compared = peer !== undefined && figure !== undefined && { peer, ratio: figure / (figures.get(peer) ?? 0) };
    return { title, figure, unit: 'CPU us', ...compared, ...(target && { target }) };
  });
}

/** A GET of 1 KiB from a service over HTTP/1.1. */
function requestRows(tls: Certificate): readonly Row[] {
  const title = (protocol: string, server: string) => `proxy a GET of 1 KiB, from ${protocol} and TLS: ${server}`;
  const settings = { TLS_CERT: tls.file, TLS_KEY: tls.keyFile };
  const servers: readonly (readonly [string, Start])[] = [
    ['frontdesk', frontdeskWith('proxy', settings)],
    ...(isInstalled('envoy') ? [['Envoy', envoyWithTls(tls)] as const] : []),
  ];
  return servers.flatMap(([server, start]): Row[] => {
    const request = { path: '/proxied/1024', headers: {} };
    const http1 = title('HTTP/1.1', server);
    return [
      { title: http1, request: { ...request, protocol: 'http/1.1' }, start },
      {
        title: title('HTTP/2', server),
        request: { ...request, protocol: 'h2' },
        start,
        peer: http1,
        ...(server === 'frontdesk' && { target: { ratioMax: 1.2 } }),
      },
    ];
  });
}

function envoyWithTls(tls: Certificate): Start {
  return (port, _directory, { upstreamPort }) => {
    const recipe = { port, target: upstreamPort, tls, prefix: '/proxied/', route: { prefix_rewrite: '/' } };
    return startMeasured(envoy, envoyConfiguration(recipe), port);
  };
}

/** A message of 100 bytes, and the same as the response. */
function callRows(): readonly Row[] {
  const message = Buffer.concat([Buffer.from([0, 0, 0, 0, 100]), Buffer.alloc(100)]).toString('base64');
  const headers = { 'content-type': 'application/grpc', te: 'trailers' };
  const request = { protocol: 'h2c', path: '/bench.Echo/Call', headers, message } as const;
  const title = (server: string) => `a unary gRPC call: ${server}`;
  const bare = title('a bare proxy on node:http2');
  return [
    { title: bare, request, start: benchServer('grpc-proxy') },
    {
      title: title('frontdesk'),
      request,
      start: frontdeskWith('grpc-proxy'),
      peer: bare,
      target: { ratioMax: 1.25 },
    },
    ...(isInstalled('envoy') ? [{ title: title('Envoy'), request, start: startEnvoyForCalls, peer: bare }] : []),
  ];
}

const startEnvoyForCalls: Start = (port, _directory, { upstreamPort }) => {
  return startMeasured(envoy, envoyConfiguration({ port, target: upstreamPort, http2: true }), port);
};

interface RowServer extends Started {
  readonly row: Row;
}

/** The CPU time of a request in each round, by row. Rows with the same start share a process. */
async function samplesOf(
  rows: readonly Row[],
  load: Child,
  directory: string,
  portsFor: (row: Row) => Parameters<Start>[2],
): Promise<readonly number[][]> {
  const started = new Map<Start, Started>();
  try {
    for (const [index, row] of rows.entries()) {
      if (started.has(row.start)) continue;
      started.set(row.start, await startOn(row.start, directory, `http2-${index}`, portsFor(row)));
    }
    const servers = rows.map((row): RowServer => ({ ...(started.get(row.start) as Started), row }));
    for (const one of servers) {
      while (!(await accepts(one.port))) await sleep(20);
      await measure(one, load, { warmUpMs: 0, durationMs: firstWarmUpMs });
    }
    return await takeTurns(servers, rounds, (one) => measure(one, load, { warmUpMs, durationMs }));
  } finally {
    await Promise.all([...started.values()].map(({ server }) => server.stop()));
  }
}

async function measure(
  { server, port, row }: RowServer,
  load: Child,
  round: Pick<Http2LoadOrder, 'warmUpMs' | 'durationMs'>,
): Promise<number> {
  const order: Http2LoadOrder = { ...round, ...row.request, port };
  const { cpuMicros, requests } = await measureUnderLoad(server, load, order);
  const stopped = once(load.process, 'message');
  load.process.send(stopOrder);
  await stopped;
  return cpuMicros / requests;
}
