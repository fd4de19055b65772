/** Streams large bodies through each proxy, one at a time in each direction. */
import { once } from 'node:events';
import { mkdirSync } from 'node:fs';
import { type IncomingMessage, request } from 'node:http';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../../support/programs/free-port.ts';
import { chunksOf, mebibyte } from '../clients/body-chunks.ts';
import { demoHeaders, untilReady } from '../clients/requests.ts';
import type { Child } from '../processes/child.ts';
import { startBackends } from '../processes/start-servers.ts';
import { type MeasuredProxy, proxies } from '../rows/proxy-rows.ts';

export interface ThroughputFigures {
  readonly proxy: string;
  /** The proxy and the transfer. */
  readonly title: string;
  readonly direction: Direction;
  readonly cpuMs: number;
  readonly megabytesPerSecond: number;
  /** The highest value seen. */
  readonly rssBytes: number;
}

type Direction = 'GET' | 'POST';

/** Fastify would buffer a text body. */
const binary = { 'content-type': 'application/octet-stream' };
const memorySampleEveryMs = 100;

export async function measureThroughput(parent: string, mebibytes: number): Promise<ThroughputFigures[]> {
  const backends = await startBackends(parent);
  const figures: ThroughputFigures[] = [];
  try {
    for (const proxy of proxies) {
      const directory = join(parent, `throughput-${proxy.name}`);
      mkdirSync(directory);
      const port = await freePort();
      const child = await proxy.start(port, directory, backends);
      try {
        await untilReady(port, '/proxied/2', demoHeaders);
        for (const direction of ['GET', 'POST'] as const)
          figures.push(await measure(proxy, child, { port, direction, mebibytes }));
      } finally {
        await child.stop();
      }
    }
  } finally {
    await backends.stop();
  }
  return figures;
}

interface Transfer {
  readonly port: number;
  readonly direction: Direction;
  readonly mebibytes: number;
}

async function measure({ name, title }: MeasuredProxy, child: Child, transfer: Transfer): Promise<ThroughputFigures> {
  const { direction, mebibytes } = transfer;
  // Warms up V8.
  await send({ ...transfer, mebibytes: Math.min(mebibytes, 64) });
  const before = await child.usage();
  const startedAtMs = performance.now();
  const sending = send(transfer);
  const [rssBytes] = await Promise.all([peakMemory(child, sending), sending]);
  const seconds = (performance.now() - startedAtMs) / 1000;
  return {
    title: `${direction} of ${mebibytes} MiB: ${title}`,
    ...{ proxy: name, direction },
    cpuMs: ((await child.usage()).cpuMicros - before.cpuMicros) / 1000,
    megabytesPerSecond: (mebibytes * mebibyte) / 1e6 / seconds,
    rssBytes,
  };
}

async function peakMemory(child: Child, sending: Promise<void>): Promise<number> {
  let peak = 0;
  let isOver = false;
  const end = () => {
    isOver = true;
  };
  sending.then(end, end);
  while (!isOver) {
    peak = Math.max(peak, (await child.usage()).rssBytes);
    await sleep(memorySampleEveryMs);
  }
  return peak;
}

async function send({ port, direction, mebibytes }: Transfer): Promise<void> {
  const bytes = mebibytes * mebibyte;
  const isUpload = direction === 'POST';
  const clientRequest = request({
    ...{ port, host: '127.0.0.1', agent: false, method: direction, path: `/proxied/${isUpload ? 2 : bytes}` },
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
