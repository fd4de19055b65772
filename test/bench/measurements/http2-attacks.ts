/** Attacks with HTTP/2, one after another: what each costs the server, and what a well-behaved client notices. */
import { once } from 'node:events';
import { mkdirSync } from 'node:fs';
import { Agent } from 'node:http';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../../support/programs/free-port.ts';
import {
  flag,
  formatFrame,
  formatReset,
  formatSettings,
  formatWindowUpdate,
  frameType,
  indexedNewest,
  literal,
  preface,
  setting,
  stored,
  uint32,
} from '../../support/wire/http2-frames.ts';
import { atFixedPace, countFailure, headersFrom, outcomeOf, untilReady } from '../clients/requests.ts';
import { writeConfiguration } from '../processes/configuration.ts';
import { startBackends, startFrontdesk } from '../processes/start-servers.ts';
import { failureRows, type MeasuredRow } from '../table.ts';
import { quantile } from './samples.ts';

/** Each attack opens this many connections, one after another, and holds each until the server closes it. */
const connections = 20;
const everyMs = 250;
const holdMs = 2000;
const requestEveryMs = 10;
const path = '/proxied/1024';
const clientHeaders = headersFrom('192.0.2.1', 'demo', 'demo');

interface Attack {
  readonly title: string;
  readonly bytes: Buffer;
  /** @default false */
  readonly doesNotRead?: boolean;
}

export async function measureHttp2Attacks(parent: string): Promise<MeasuredRow[]> {
  const directory = join(parent, 'http2-attacks');
  mkdirSync(directory);
  const backends = await startBackends(directory);
  const port = await freePort();
  const configDir = writeConfiguration(join(directory, 'gateway'), 'proxy-auth', backends);
  const child = startFrontdesk(directory, { PORT: String(port), CONFIG_DIR: configDir, TRUSTED_PROXIES: '127.0.0.1' });
  const agent = new Agent({ keepAlive: true });
  const failures = new Map<string, number>();
  const measure = () => latencyOf(port, agent, failures);
  try {
    await untilReady(port, path, clientHeaders);
    await measure();
    let before = await child.usage();
    const quietMs = await measure();
    const quietMicros = (await child.usage()).cpuMicros - before.cpuMicros;
    const table: MeasuredRow[] = [{ title: 'latency without an attack, 99th percentile', figure: quietMs, unit: 'ms' }];
    for (const one of attacks) {
      before = await child.usage();
      const attacking = atFixedPace(everyMs, connections * everyMs, () => run(port, one));
      const latencyMs = await measure();
      const during = await child.usage();
      await attacking;
      const cpuMs = (during.cpuMicros - before.cpuMicros - quietMicros) / 1000;
      table.push(
        { title: `CPU time of a connection: ${one.title}`, figure: cpuMs / connections, unit: 'ms' },
        { title: `memory: ${one.title}`, figure: (during.rssBytes - before.rssBytes) / 1e6, unit: 'MB' },
        {
          title: `latency, 99th percentile: ${one.title}`,
          figure: latencyMs,
          unit: 'ms',
          peer: 'without an attack',
          ratio: latencyMs / quietMs,
        },
      );
    }
    return [...table, ...failureRows(failures)];
  } finally {
    agent.destroy();
    await Promise.all([child.stop(), backends.stop()]);
  }
}

/** Measures the requests of a well-behaved client for as long as an attack opens connections. */
async function latencyOf(port: number, agent: Agent, failures: Map<string, number>): Promise<number> {
  const latencies = await atFixedPace(requestEveryMs, connections * everyMs, async () => {
    const startMs = performance.now();
    countFailure(failures, await outcomeOf({ port, path, headers: clientHeaders, agent }));
    return performance.now() - startMs;
  });
  return quantile(latencies, 0.99);
}

async function run(port: number, { bytes, doesNotRead = false }: Attack): Promise<void> {
  const socket = connect(port, '127.0.0.1').on('error', () => {});
  if (doesNotRead) socket.pause();
  else socket.resume();
  socket.write(bytes);
  await Promise.race([sleep(holdMs, undefined, { ref: false }), once(socket, 'close').catch(() => {})]);
  socket.destroy();
}

/** `settings` are those of the attacker. */
function begin(frames: readonly Buffer[], settings: Readonly<Record<number, number>> = {}): Buffer {
  return Buffer.concat([Buffer.from(preface), formatSettings(settings), ...frames]);
}

function times(count: number, frameOf: (stream: number) => Buffer): readonly Buffer[] {
  return Array.from({ length: count }, (_, index) => frameOf(2 * index + 1));
}

function head(target: string, method: 0x82 | 0x83, ...more: readonly Buffer[]): Buffer {
  const headers = { ':path': target, ':authority': 'a', ...headersFrom('198.51.100.250', 'guest', 'guest') };
  const lines = Object.entries(headers).map(([name, value]) => literal(name, value));
  return Buffer.concat([Buffer.from([method, 0x86]), ...lines, ...more]);
}

/** A complete request. */
function get(stream: number, target = path, ...more: readonly Buffer[]): Buffer {
  return formatFrame(frameType.headers, flag.endStream | flag.endHeaders, stream, head(target, 0x82, ...more));
}

/** The head of a request whose body follows. */
function post(stream: number): Buffer {
  return formatFrame(frameType.headers, flag.endHeaders, stream, head(path, 0x83));
}

const ping = formatFrame(frameType.ping, 0, 0, Buffer.alloc(8));
const bomb = Array<Buffer>(200).fill(indexedNewest);

const attacks: readonly Attack[] = [
  { title: '100 requests, for comparison', bytes: begin(times(100, get)) },
  {
    title: '2,000 requests that are reset',
    bytes: begin(times(2000, (id) => Buffer.concat([get(id), formatReset(id)]))),
  },
  {
    title: '2,000 requests that the server resets',
    bytes: begin(times(2000, (id) => Buffer.concat([get(id), formatWindowUpdate(id, 0)]))),
  },
  { title: '1,000 concurrent streams', bytes: begin(times(1000, get)) },
  {
    title: '100 responses of 1 MB without a window',
    bytes: begin(
      times(100, (id) => get(id, '/proxied/1000000')),
      { [setting.initialWindowSize]: 0 },
    ),
  },
  {
    title: '100 responses of 1 MB that are not read',
    bytes: begin(
      times(100, (id) => get(id, '/proxied/1000000')),
      { [setting.initialWindowSize]: 2 ** 31 - 1 },
    ),
    doesNotRead: true,
  },
  { title: '100 bodies that do not arrive', bytes: begin(times(100, post)) },
  {
    title: '200 CONTINUATION frames',
    bytes: begin([
      formatFrame(frameType.headers, 0, 1, head(path, 0x82)),
      ...times(200, () => formatFrame(frameType.continuation, 0, 1, Buffer.alloc(1000))),
    ]),
  },
  { title: 'headers that do not end', bytes: begin([formatFrame(frameType.headers, 0, 1, head(path, 0x82))]) },
  { title: 'the preface alone', bytes: Buffer.from(preface) },
  {
    title: '100 times 200 references to a large header',
    bytes: begin([get(1, path, stored('x', 'v'.repeat(3900))), ...times(100, (id) => get(id + 2, path, ...bomb))]),
  },
  {
    title: '100 times 300 headers',
    bytes: begin(times(100, (id) => get(id, path, ...Array<Buffer>(300).fill(literal('a', 'b'))))),
  },
  {
    title: '20,000 empty DATA frames',
    bytes: begin([post(1), ...times(20_000, () => formatFrame(frameType.data, 0, 1))]),
  },
  { title: '200,000 PING frames', bytes: begin(times(200_000, () => ping)) },
  { title: '200,000 PING frames without reading', bytes: begin(times(200_000, () => ping)), doesNotRead: true },
  { title: '20,000 SETTINGS frames', bytes: begin(times(20_000, () => formatSettings())) },
  { title: '200,000 WINDOW_UPDATE frames', bytes: begin(times(200_000, () => formatWindowUpdate(0, 1))) },
  {
    title: '20,000 PRIORITY frames',
    bytes: begin(
      times(20_000, (id) => formatFrame(frameType.priority, 0, id, Buffer.concat([uint32(0), Buffer.from([0])]))),
    ),
  },
  {
    title: '500 unknown frames of 16 KiB',
    bytes: begin(times(500, () => formatFrame(frameType.unknown, 0, 0, Buffer.alloc(16_384)))),
  },
];
