/** Runs many attacks for ten minutes at a modest rate, while no request of a well-behaved client may fail. */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { Agent, get } from 'node:http';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../support/programs/free-port.ts';
import { booking } from './booking.ts';
import { writeConfiguration } from './configuration.ts';
import { flag, formatFrame, frameType, preface } from './grpc-frames.ts';
import { quantile, untilReady } from './measure.ts';
import { startFrontdesk, startParts } from './servers.ts';

export interface AttackFigures {
  /** The 99th percentile of the well-behaved client's latency before the attacks, in milliseconds. */
  readonly calmMs: number;
  readonly attackedMs: number;
  readonly requests: number;
  /** Every outcome other than 200, with its count. */
  readonly failures: ReadonlyMap<string, number>;
  readonly attacks: number;
  /** Before the attacks, at their end, and after a rest. */
  readonly rssBytes: readonly [number, number, number];
}

const calmForMs = 10_000;
const attackForMs = 600_000;
const restMs = 80_000;
const requestEveryMs = 10;
const paths = [`/v1/hotels/bookings/${booking.id}`, '/proxied/1024'] as const;

interface Target {
  readonly port: number;
  readonly grpcPort: number;
  readonly configDir: string;
}

export async function attack(directory: string): Promise<AttackFigures> {
  const parts = await startParts(directory);
  const [port, grpcPort] = [await freePort(), await freePort()];
  const configDir = writeConfiguration(join(directory, 'attacks'), 'proxy-auth', parts);
  const own = {
    PORT: String(port),
    RATELIMIT_PORT: String(grpcPort),
    TRUSTED_PROXIES: '127.0.0.1',
    LOG_LEVEL: 'error',
  };
  const child = startFrontdesk(directory, own, ['--only', 'gateway,auth,ratelimit,hotel'], { configDir });
  const agent = new Agent({ keepAlive: true });
  writeFileSync(join(configDir, 'services/hotel.yaml'), hotel);
  const rss = async () => (await child.usage()).rssBytes;
  try {
    for (const path of paths) await untilReady(port, path, headersOf('demo', 'demo'));
    await measure(port, agent, calmForMs / 2);
    const calm = await measure(port, agent, calmForMs);
    const before = await rss();
    const attacking = runAttacks({ port, grpcPort, configDir }, attackForMs);
    const attacked = await measure(port, agent, attackForMs);
    const begun = await attacking;
    const during = await rss();
    await sleep(restMs);
    return {
      calmMs: calm.p99Ms,
      attackedMs: attacked.p99Ms,
      ...{ requests: attacked.requests, failures: attacked.failures, attacks: begun },
      rssBytes: [before, during, await rss()],
    };
  } finally {
    agent.destroy();
    await Promise.all([child.stop(), parts.stop()]);
  }
}

const hotel = JSON.stringify({
  ...{ apiVersion: 'gateway/v1', kind: 'Mapping', name: 'hotel', prefix: '/v1/hotels', service: 'hotel' },
  labels: {
    gateway: [
      { test_allow: [{ 'x-gateway-test-allow': { header: 'x-gateway-test-allow', omit_if_not_present: true } }] },
    ],
  },
});

function headersOf(user: string, password: string, address = '192.0.2.1') {
  const authorization = `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`;
  return { 'x-forwarded-for': address, authorization, accept: 'application/json' };
}

interface Measured {
  readonly p99Ms: number;
  readonly requests: number;
  readonly failures: ReadonlyMap<string, number>;
}

/** Starts requests at a fixed pace, however long they take. */
async function measure(port: number, agent: Agent, forMs: number): Promise<Measured> {
  const durations: number[] = [];
  const failures = new Map<string, number>();
  const headers = headersOf('demo', 'demo');
  await every(requestEveryMs, forMs, async (turn) => {
    const startMs = performance.now();
    const outcome = await outcomeOf(port, paths[turn % paths.length] ?? '/', headers, agent);
    durations.push(performance.now() - startMs);
    if (outcome !== '200') failures.set(outcome, (failures.get(outcome) ?? 0) + 1);
  });
  return { p99Ms: quantile(durations, 0.99), requests: durations.length, failures };
}

function outcomeOf(port: number, path: string, headers: Record<string, string>, agent: Agent): Promise<string> {
  return new Promise((resolve) => {
    get({ port, path, headers, agent, host: '127.0.0.1' }, (response) => {
      response.resume().once('close', () => resolve(response.complete ? String(response.statusCode) : 'cut off'));
    }).on('error', (error) => resolve(String(error)));
  });
}

async function every(ms: number, forMs: number, send: (turn: number) => Promise<void>): Promise<number> {
  const sent: Promise<void>[] = [];
  const startMs = performance.now();
  let turn = 0;
  for (; turn * ms < forMs; turn += 1) {
    await sleep(Math.max(0, startMs + turn * ms - performance.now()));
    sent.push(send(turn));
  }
  await Promise.all(sent);
  return turn;
}

/** Returns the number of attacks. */
async function runAttacks(target: Target, forMs: number): Promise<number> {
  const counts = await Promise.all(
    attacks.map(({ everyMs, run }) => every(everyMs, forMs, (turn) => run(target, turn))),
  );
  return counts.reduce((sum, count) => sum + count, 0);
}

interface Attack {
  readonly everyMs: number;
  readonly run: (target: Target, turn: number) => Promise<void>;
}

const guest = Object.entries(headersOf('guest', 'guest', '198.51.100.250')).map(
  ([name, value]) => `${name}: ${value}\r\n`,
);
const requestHead = (line: string, more = '') => `${line} HTTP/1.1\r\nHost: a\r\n${guest.join('')}${more}\r\n`;

const attacks: readonly Attack[] = [
  // Pipelined requests whose responses are never read.
  { everyMs: 1000, run: (at) => hold(at.port, requestHead('GET /v1/hotels').repeat(1000), 5000) },
  // Connections that send nothing, half a line, or a body byte by byte.
  { everyMs: 100, run: (at) => hold(at.port, '', 60_000) },
  { everyMs: 200, run: (at) => hold(at.port, 'GET / HT', 60_000) },
  { everyMs: 500, run: (at) => drip(at.port, requestHead('POST /proxied/2', 'Content-Length: 100000\r\n'), 30) },
  // Password guesses from many addresses.
  {
    everyMs: 50,
    run: ({ port }, turn) =>
      ask(port, '/v1/hotels', headersOf(`user-${turn % 1000}`, `${turn}`, `198.51.100.${turn % 200}`)),
  },
  // Input that is expensive to parse.
  {
    everyMs: 200,
    run: (at) => hold(at.port, requestHead('GET /v1/hotels', `Accept: ${'a/b;q=0.1,'.repeat(600)}\r\n`), 500),
  },
  { everyMs: 200, run: (at) => hold(at.port, requestHead(`GET /v1/hotels/?q=${'a'.repeat(4000)}`), 500) },
  { everyMs: 200, run: (at) => hold(at.port, post('/v1/hotels/bookings/', '['.repeat(60_000)), 500) },
  // Ambiguous requests.
  { everyMs: 200, run: (at) => hold(at.port, requestHead('GET /x/..%20/v1/hotels'), 500) },
  { everyMs: 200, run: (at) => hold(at.port, requestHead('GET /v1/hotels', 'Host: b\r\n'), 500) },
  { everyMs: 200, run: (at) => hold(at.port, requestHead('TRACE /v1/hotels'), 500) },
  {
    everyMs: 200,
    run: (at) => hold(at.port, `${requestHead('POST /proxied/2', 'Transfer-Encoding: chunked\r\n')}zz\r\n`, 500),
  },
  // A new rate-limit counter for each request.
  {
    everyMs: 20,
    run: ({ port }) =>
      ask(port, '/v1/hotels', {
        ...headersOf('guest', 'guest'),
        'x-gateway-test-allow': randomBytes(8).toString('hex'),
      }),
  },
  // HTTP/2: endless CONTINUATION frames, and streams that are opened and reset.
  { everyMs: 500, run: (at) => hold(at.grpcPort, http2(continuations(200)), 2000) },
  { everyMs: 500, run: (at) => hold(at.grpcPort, http2(resets(500)), 2000) },
  // Changes of the configuration, every other one with deeply nested YAML.
  {
    everyMs: 5000,
    async run({ configDir }, turn) {
      const text =
        turn % 2 === 0 ? '['.repeat(2000) : JSON.stringify({ ...JSON.parse(hotel), name: `x-${turn}`, prefix: '/x' });
      writeFileSync(join(configDir, 'services/changing.yaml'), text);
    },
  },
];

function post(path: string, body: string): string {
  return requestHead(`POST ${path}`, `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n`) + body;
}

/** Sends bytes without reading the response, and disconnects after a while unless the server closes the connection. */
async function hold(port: number, bytes: string | Buffer, forMs: number): Promise<void> {
  const socket = open(port).pause();
  socket.write(bytes);
  await Promise.race([sleep(forMs, undefined, { ref: false }), once(socket, 'close').catch(() => {})]);
  socket.destroy();
}

async function drip(port: number, head: string, seconds: number): Promise<void> {
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

async function ask(port: number, path: string, headers: Record<string, string>): Promise<void> {
  await outcomeOf(port, path, headers, new Agent());
}

/** `:method: GET` from the static table (RFC 7541, appendix A). */
const method = Buffer.from([0x82]);

/** Opens a header block with `:method: GET` that does not end, so the next frames have to continue it. */
function http2(frames: readonly Buffer[]): Buffer {
  const begun = formatFrame(frameType.headers, 0, 1, method);
  const settings = formatFrame(frameType.settings, 0, 0, Buffer.alloc(0));
  return Buffer.concat([Buffer.from(preface), settings, begun, ...frames]);
}

function continuations(count: number): readonly Buffer[] {
  return Array(count).fill(formatFrame(frameType.continuation, 0, 1, Buffer.alloc(1000)));
}

function resets(count: number): readonly Buffer[] {
  const ended = formatFrame(frameType.continuation, flag.endHeaders, 1, Buffer.alloc(0));
  const cancel = Buffer.from([0, 0, 0, 8]);
  const streams = Array.from({ length: count }, (_, index) => 2 * index + 3);
  const openAndReset = (id: number) => [
    formatFrame(frameType.headers, flag.endStream | flag.endHeaders, id, method),
    formatFrame(frameType.reset, 0, id, cancel),
  ];
  return [ended, ...streams.flatMap(openAndReset)];
}
