/** Sends large bodies through a proxy, one at a time in each direction. No process holds more than a part of one. */
import { mkdirSync } from 'node:fs';
import { type ClientRequest, type IncomingMessage, request } from 'node:http';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../support/programs/free-port.ts';
import type { Child } from './child.ts';
import { untilReady } from './measure.ts';
import { megabyte, piecesOf } from './pieces.ts';
import { type MeasuredProxy, proxies } from './proxy-rows.ts';
import { startParts } from './servers.ts';

export interface ThroughputFigures {
  readonly title: string;
  readonly proxy: string;
  readonly cpuMs: number;
  readonly megabytesPerSecond: number;
  /** The highest value seen. */
  readonly rssBytes: number;
}

type Direction = 'GET' | 'POST';

const headers = { 'x-gateway-test-allow': 'bench', authorization: `Basic ${btoa('demo:demo')}` };
/** Fastify would buffer a text body. */
const binary = { 'content-type': 'application/octet-stream' };
const lookEveryMs = 100;

export async function measureThroughput(parent: string, mebibytes: number): Promise<ThroughputFigures[]> {
  const parts = await startParts(parent);
  const figures: ThroughputFigures[] = [];
  try {
    for (const proxy of proxies) {
      const directory = join(parent, `throughput-${proxy.name}`);
      mkdirSync(directory);
      const port = await freePort();
      const child = await proxy.start(port, directory, parts);
      try {
        await untilReady(port, '/proxied/2', headers);
        for (const direction of ['GET', 'POST'] as const)
          figures.push(await measure(proxy, child, { port, direction, mebibytes }));
      } finally {
        await child.stop();
      }
    }
  } finally {
    await parts.stop();
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
  const [rssBytes] = await Promise.all([mostMemory(child, sending), sending]);
  const seconds = (performance.now() - startedAtMs) / 1000;
  return {
    title: `${direction} ${mebibytes} MiB: ${title}`,
    proxy: `${name}-${direction}`,
    cpuMs: ((await child.usage()).cpuMicros - before.cpuMicros) / 1000,
    megabytesPerSecond: (mebibytes * megabyte) / 1e6 / seconds,
    rssBytes,
  };
}

async function mostMemory(child: Child, sending: Promise<void>): Promise<number> {
  let most = 0;
  let isOver = false;
  const over = () => {
    isOver = true;
  };
  sending.then(over, over);
  while (!isOver) {
    most = Math.max(most, (await child.usage()).rssBytes);
    await sleep(lookEveryMs);
  }
  return most;
}

async function send({ port, direction, mebibytes }: Transfer): Promise<void> {
  const bytes = mebibytes * megabyte;
  const isUp = direction === 'POST';
  const asked = request({
    ...{ port, host: '127.0.0.1', agent: false, method: direction, path: `/proxied/${isUp ? 2 : bytes}` },
    headers: { ...headers, ...(isUp ? { ...binary, 'content-length': bytes } : {}) },
  });
  const answered = answerTo(asked);
  await Promise.all([
    pipeline(Readable.from(isUp ? piecesOf(bytes) : []), asked),
    answered.then((answer) => countBytes(answer, isUp ? 2 : bytes)),
  ]);
}

function answerTo(asked: ClientRequest): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => asked.once('response', resolve).once('error', reject));
}

async function countBytes(answer: IncomingMessage, expected: number): Promise<void> {
  let received = 0;
  for await (const chunk of answer) received += (chunk as Buffer).length;
  if (answer.statusCode === 200 && received === expected) return;
  throw new Error(`${answer.statusCode} with ${received} of ${expected} bytes`);
}
