/** Streams large bodies through each proxy, one at a time in each direction. */
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { chunksOf, mebibyte } from '../clients/body-chunks.ts';
import { demoHeaders, untilReady } from '../clients/requests.ts';
import type { MeasuredServer } from '../processes/child.ts';
import { startBackends, startOn } from '../processes/start-servers.ts';
import { proxies } from '../rows/proxy-rows.ts';
import type { MeasuredRow } from '../table.ts';

type Direction = 'GET' | 'POST';

/** Fastify would buffer a text body. */
const binary = { 'content-type': 'application/octet-stream' };
const memorySampleEveryMs = 100;

export async function measureBodies(directory: string, mebibytes: number): Promise<MeasuredRow[]> {
  const backends = await startBackends(directory);
  const rows: MeasuredRow[] = [];
  const peers: Partial<Record<Direction, number>> = {};
  try {
    for (const { name, title: proxy, start } of proxies) {
      const { port, server } = await startOn(start, directory, `bodies-${name}`, backends);
      try {
        await untilReady(port, '/proxied/2', demoHeaders);
        for (const direction of ['GET', 'POST'] as const) {
          const title = `${direction} of ${mebibytes} MiB: ${proxy}`;
          const { cpuMs, megabytesPerSecond, rssBytes } = await measure(server, { port, direction, mebibytes });
          // The peer is measured first.
          if (name === 'http-proxy') peers[direction] = cpuMs;
          const ratio = cpuMs / (peers[direction] ?? Number.NaN);
          rows.push(
            { title, figure: cpuMs, unit: 'CPU ms', peer: '@fastify/http-proxy', ratio },
            { title: `${title}, speed`, figure: megabytesPerSecond, unit: 'MB/s' },
            {
              title: `${title}, peak memory`,
              figure: rssBytes / 1e6,
              unit: 'MB',
              ...(name.startsWith('proxy') ? { target: { figureMax: 220 } } : {}),
            },
          );
        }
      } finally {
        await server.stop();
      }
    }
  } finally {
    await backends.stop();
  }
  return rows;
}

interface Transfer {
  readonly port: number;
  readonly direction: Direction;
  readonly mebibytes: number;
}

async function measure(server: MeasuredServer, transfer: Transfer) {
  const { mebibytes } = transfer;
  // Warms up V8.
  await send({ ...transfer, mebibytes: Math.min(mebibytes, 64) });
  const before = await server.usage();
  const startedAtMs = performance.now();
  const sending = send(transfer);
  const [rssBytes] = await Promise.all([peakMemory(server, sending), sending]);
  const seconds = (performance.now() - startedAtMs) / 1000;
  return {
    cpuMs: ((await server.usage()).cpuMicros - before.cpuMicros) / 1000,
    megabytesPerSecond: (mebibytes * mebibyte) / 1e6 / seconds,
    rssBytes,
  };
}

async function peakMemory(server: MeasuredServer, sending: Promise<void>): Promise<number> {
  let peak = 0;
  let isOver = false;
  const end = () => {
    isOver = true;
  };
  sending.then(end, end);
  while (!isOver) {
    peak = Math.max(peak, (await server.usage()).rssBytes);
    await sleep(memorySampleEveryMs);
  }
  return peak;
}

async function send({ port, direction, mebibytes }: Transfer): Promise<void> {
  const bytes = mebibytes * mebibyte;
  const isUpload = direction === 'POST';
  const clientRequest = request({
    port,
    host: '127.0.0.1',
    agent: false,
    method: direction,
    path: `/proxied/${isUpload ? 2 : bytes}`,
    headers: { ...demoHeaders, ...(isUpload ? { ...binary, 'content-length': bytes } : {}) },
  });
  const response = once(clientRequest, 'response') as Promise<[IncomingMessage]>;
  await Promise.all([
    pipeline(Readable.from(isUpload ? chunksOf(bytes) : []), clientRequest),
    response.then(([incoming]) => checkBytes(incoming, isUpload ? 2 : bytes)),
  ]);
}

/** Rejects unless the response is complete and has status 200. */
async function checkBytes(response: IncomingMessage, expected: number): Promise<void> {
  let received = 0;
  for await (const chunk of response) received += (chunk as Buffer).length;
  if (response.statusCode === 200 && received === expected) return;
  throw new Error(`${response.statusCode} with ${received} of ${expected} bytes`);
}
