/** Runs many attacks for ten minutes at a modest rate. No request of a well-behaved client may fail meanwhile. */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { Agent } from 'node:http';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../../support/programs/free-port.ts';
import { yamlOf } from '../../support/temporary-files.ts';
import { flag, formatFrame, frameType, preface } from '../../support/wire/http2-frames.ts';
import { booking } from '../clients/booking.ts';
import { atFixedPace, countFailure, headersFrom, outcomeOf, untilReady } from '../clients/requests.ts';
import { hotelRecord, writeConfiguration } from '../processes/configuration.ts';
import { startBackends, startFrontdesk } from '../processes/start-servers.ts';
import { failureRows, type MeasuredRow } from '../table.ts';
import { quantile } from './samples.ts';

const beforeDurationMs = 10_000;
const attackDurationMs = 600_000;
const pauseMs = 80_000;
const requestEveryMs = 10;
const paths = [`/v1/hotels/bookings/${booking.id}`, '/proxied/1024'] as const;

interface AttackedServer {
  readonly port: number;
  readonly grpcPort: number;
  readonly configDir: string;
}

export async function attack(directory: string): Promise<MeasuredRow[]> {
  const backends = await startBackends(directory);
  const [port, grpcPort] = [await freePort(), await freePort()];
  const configDir = writeConfiguration(join(directory, 'attacks'), 'proxy-auth', backends);
  writeFileSync(join(configDir, 'services/hotel.yaml'), yamlOf(hotelRecord));
  const child = startFrontdesk(directory, {
    PORT: String(port),
    RATELIMIT_PORT: String(grpcPort),
    CONFIG_DIR: configDir,
    TRUSTED_PROXIES: '127.0.0.1',
  });
  const agent = new Agent({ keepAlive: true });
  const memoryRow = async (time: string): Promise<MeasuredRow> => {
    return { title: `memory ${time}`, figure: (await child.usage()).rssBytes / 1e6, unit: 'MB' };
  };
  try {
    for (const path of paths) await untilReady(port, path, clientHeaders);
    await measure(port, agent, beforeDurationMs / 2);
    const before = await measure(port, agent, beforeDurationMs);
    const memory = [await memoryRow('before the attacks')];
    const attacking = runAttacks({ port, grpcPort, configDir }, attackDurationMs);
    const during = await measure(port, agent, attackDurationMs);
    const attackCount = await attacking;
    memory.push(await memoryRow('at the end of the attacks'));
    await sleep(pauseMs);
    memory.push(await memoryRow('after the attacks and a pause'));
    const latency = 'latency of a well-behaved client, 99th percentile';
    return [
      { title: `${latency}, before the attacks`, figure: before.p99Ms, unit: 'ms' },
      {
        title: `${latency}, during the attacks`,
        figure: during.p99Ms,
        unit: 'ms',
        peer: 'before the attacks',
        ratio: during.p99Ms / before.p99Ms,
      },
      { title: 'requests sent by the well-behaved client', figure: during.requests, unit: '' },
      ...failureRows(during.failures),
      { title: 'attacks sent', figure: attackCount, unit: '' },
      ...memory,
    ];
  } finally {
    agent.destroy();
    await Promise.all([child.stop(), backends.stop()]);
  }
}

/** The headers of the well-behaved client. */
const clientHeaders = headersFrom('192.0.2.1', 'demo', 'demo');

async function measure(port: number, agent: Agent, durationMs: number) {
  const failures = new Map<string, number>();
  const latencies = await atFixedPace(requestEveryMs, durationMs, async (turn) => {
    const startMs = performance.now();
    const path = paths[turn % paths.length];
    countFailure(failures, await outcomeOf({ port, path, headers: clientHeaders, agent }));
    return performance.now() - startMs;
  });
  return { p99Ms: quantile(latencies, 0.99), requests: latencies.length, failures };
}

/** Returns the number of attacks. */
async function runAttacks(server: AttackedServer, durationMs: number): Promise<number> {
  const runs = await Promise.all(
    attacks.map(({ everyMs, run }) => atFixedPace(everyMs, durationMs, (turn) => run(server, turn))),
  );
  return runs.flat().length;
}

interface Attack {
  readonly everyMs: number;
  readonly run: (server: AttackedServer, turn: number) => Promise<unknown>;
}

const attackerHeaders = Object.entries(headersFrom('198.51.100.250', 'guest', 'guest'))
  .map(([name, value]) => `${name}: ${value}\r\n`)
  .join('');
const requestHead = (line: string, moreHeaders = '') =>
  `${line} HTTP/1.1\r\nHost: a\r\n${attackerHeaders}${moreHeaders}\r\n`;

/** An attack that sends these bytes to the gateway, does not read the response, and then disconnects. */
function repeated(bytes: string, { everyMs = 200, holdMs = 500 } = {}): Attack {
  return { everyMs, run: ({ port }) => sendAndHold(port, bytes, holdMs) };
}

const attacks: readonly Attack[] = [
  // Pipelined requests whose responses are never read.
  repeated(requestHead('GET /v1/hotels').repeat(1000), { everyMs: 1000, holdMs: 5000 }),
  // Connections that send nothing, half a line, or a body byte by byte.
  repeated('', { everyMs: 100, holdMs: 60_000 }),
  repeated('GET / HT', { holdMs: 60_000 }),
  {
    everyMs: 500,
    run: ({ port }) => sendSlowly(port, requestHead('POST /proxied/2', 'Content-Length: 100000\r\n'), 30),
  },
  // Password guesses from many addresses.
  {
    everyMs: 50,
    run: ({ port }, turn) =>
      outcomeOf({
        port,
        path: '/v1/hotels',
        agent: false,
        headers: headersFrom(`198.51.100.${turn % 200}`, `user-${turn % 1000}`, `${turn}`),
      }),
  },
  // Input that is expensive to parse.
  repeated(requestHead('GET /v1/hotels', `Accept: ${'a/b;q=0.1,'.repeat(600)}\r\n`)),
  repeated(requestHead(`GET /v1/hotels/?q=${'a'.repeat(4000)}`)),
  repeated(post('/v1/hotels/bookings/', '['.repeat(60_000))),
  // Ambiguous or invalid requests.
  repeated(requestHead('GET /x/..%20/v1/hotels')),
  repeated(requestHead('GET /v1/hotels', 'Host: b\r\n')),
  repeated(requestHead('TRACE /v1/hotels')),
  repeated(`${requestHead('POST /proxied/2', 'Transfer-Encoding: chunked\r\n')}zz\r\n`),
  // A new rate-limit counter for each request.
  {
    everyMs: 20,
    run: ({ port }) =>
      outcomeOf({
        port,
        path: '/v1/hotels',
        agent: false,
        headers: {
          ...headersFrom('192.0.2.1', 'guest', 'guest'),
          'x-gateway-test-allow': randomBytes(8).toString('hex'),
        },
      }),
  },
  // HTTP/2: endless CONTINUATION frames, and streams that are opened and reset.
  { everyMs: 500, run: ({ grpcPort }) => sendAndHold(grpcPort, http2(continuations(200)), 2000) },
  { everyMs: 500, run: ({ grpcPort }) => sendAndHold(grpcPort, http2(resets(500)), 2000) },
  // Changes of the configuration, every other one with deeply nested YAML.
  {
    everyMs: 5000,
    async run({ configDir }, turn) {
      const text = turn % 2 === 0 ? '['.repeat(2000) : yamlOf({ ...hotelRecord, name: `x-${turn}`, prefix: '/x' });
      writeFileSync(join(configDir, 'services/changing.yaml'), text);
    },
  },
];

function post(path: string, body: string): string {
  return requestHead(`POST ${path}`, `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n`) + body;
}

/** Sends bytes without reading the response, and disconnects after a while unless the server closes the connection. */
async function sendAndHold(port: number, bytes: string | Buffer, durationMs: number): Promise<void> {
  const socket = open(port).pause();
  socket.write(bytes);
  await Promise.race([sleep(durationMs, undefined, { ref: false }), once(socket, 'close').catch(() => {})]);
  socket.destroy();
}

async function sendSlowly(port: number, head: string, seconds: number): Promise<void> {
  const socket = open(port);
  socket.resume().write(head);
  for (let second = 0; second < seconds && socket.writable; second += 1) {
    await sleep(1000);
    socket.write('x');
  }
  socket.destroy();
}

function open(port: number): Socket {
  return connect(port, '127.0.0.1').on('error', () => {});
}

/** `:method: GET` from the static table (RFC 7541, appendix A). */
const methodGet = Buffer.from([0x82]);

/** Starts a connection and a header block that `frames` have to continue. */
function http2(frames: readonly Buffer[]): Buffer {
  const headers = formatFrame(frameType.headers, 0, 1, methodGet);
  const settings = formatFrame(frameType.settings, 0, 0, Buffer.alloc(0));
  return Buffer.concat([Buffer.from(preface), settings, headers, ...frames]);
}

function continuations(count: number): readonly Buffer[] {
  return Array(count).fill(formatFrame(frameType.continuation, 0, 1, Buffer.alloc(1000)));
}

function resets(count: number): readonly Buffer[] {
  const endOfHeaders = formatFrame(frameType.continuation, flag.endHeaders, 1, Buffer.alloc(0));
  const cancel = Buffer.from([0, 0, 0, 8]);
  const streams = Array.from({ length: count }, (_, index) => 2 * index + 3);
  const openAndReset = (id: number) => [
    formatFrame(frameType.headers, flag.endStream | flag.endHeaders, id, methodGet),
    formatFrame(frameType.reset, 0, id, cancel),
  ];
  return [endOfHeaders, ...streams.flatMap(openAndReset)];
}
