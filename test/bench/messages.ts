/** Measures small messages on open connections through a proxy: server-sent events and echoed WebSocket frames. */
import { mkdirSync } from 'node:fs';
import { type IncomingMessage, request } from 'node:http';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../support/programs/free-port.ts';
import type { Child } from './child.ts';
import { median, quantile, untilReady } from './measure.ts';
import { type MeasuredProxy, proxies } from './proxy-rows.ts';
import { startParts } from './servers.ts';
import {
  createCutter,
  eventBytes,
  formatMaskedFrame,
  frameBytes,
  microsSince,
  stamp,
  stampOfEvent,
  stampOfFrame,
} from './stamped.ts';

export interface MessageFigures {
  readonly kind: string;
  readonly proxy: string;
  readonly title: string;
  readonly cpuMicrosPerMessage: number;
  /** The delay from the upstream to the client; for frames, from the client to the upstream and back. */
  readonly delayMicros: number;
}

interface Kind {
  readonly name: string;
  readonly open: (port: number, onDelay: (micros: number) => void) => Promise<Line>;
}

interface Line {
  /** Is called every 10 ms. Does nothing for events, which the upstream sends on its own. */
  readonly send: () => void;
  readonly close: () => void;
}

const kinds: readonly Kind[] = [
  { name: 'a server-sent event', open: openEvents },
  { name: 'a WebSocket frame, there and back', open: openWebSocket },
];

/** All lines together use a fifth of a core. They send at the same moment, so the delay includes a short queue. */
const lines = 64;
const everyMs = 10;
const rounds = 9;
const roundMs = 1000;
const headers = { 'x-gateway-test-allow': 'bench', authorization: `Basic ${btoa('demo:demo')}` };

/** The proxies take turns, so that other work disturbs all equally. nginx is not configured for either kind. */
export async function measureMessages(parent: string): Promise<MessageFigures[]> {
  const parts = await startParts(parent);
  const started: Started[] = [];
  try {
    for (const proxy of proxies.filter(({ name }) => name !== 'nginx')) {
      const directory = join(parent, `messages-${proxy.name}`);
      mkdirSync(directory);
      const port = await freePort();
      started.push({ proxy, port, child: await proxy.start(port, directory, parts) });
      await untilReady(port, '/proxied/2', headers);
    }
    const figures: MessageFigures[] = [];
    for (const kind of kinds) figures.push(...(await measureKind(kind, started)));
    return figures;
  } finally {
    await Promise.all([...started.map(({ child }) => child.stop()), parts.stop()]);
  }
}

interface Started {
  readonly proxy: MeasuredProxy;
  readonly port: number;
  readonly child: Child;
}

interface Sample {
  readonly cpuMicros: number;
  readonly delayMicros: number;
}

async function measureKind(kind: Kind, started: readonly Started[]): Promise<MessageFigures[]> {
  const samples: Sample[][] = started.map(() => []);
  for (const one of started) await measureRound(kind, one);
  for (let round = 0; round < rounds; round += 1) {
    for (const [index, one] of started.entries()) samples[index]?.push(await measureRound(kind, one));
  }
  return started.map(({ proxy: { name, title } }, index) => {
    const of = samples[index] ?? [];
    return {
      ...{ kind: kind.name, proxy: name, title },
      cpuMicrosPerMessage: quantile(
        of.map(({ cpuMicros }) => cpuMicros),
        0.25,
      ),
      delayMicros: quantile(
        of.map(({ delayMicros }) => delayMicros),
        0.25,
      ),
    };
  });
}

async function measureRound({ open }: Kind, { port, child }: Started): Promise<Sample> {
  let delays: number[] = [];
  const onDelay = (micros: number) => void delays.push(micros);
  const opened = await Promise.all(Array.from({ length: lines }, () => open(port, onDelay)));
  const pace = setInterval(() => {
    for (const { send } of opened) send();
  }, everyMs);
  // Waits, because opening the lines also uses CPU time.
  await sleep(roundMs / 5);
  const before = await child.usage();
  delays = [];
  await sleep(roundMs);
  const after = await child.usage();
  const received = delays;
  clearInterval(pace);
  for (const { close } of opened) close();
  return { cpuMicros: (after.cpuMicros - before.cpuMicros) / received.length, delayMicros: median(received) };
}

async function openEvents(port: number, onDelay: (micros: number) => void): Promise<Line> {
  const asked = request({ port, host: '127.0.0.1', agent: false, path: '/proxied/events', headers });
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    asked.once('response', resolve).once('error', reject).end();
  });
  if (answer.statusCode !== 200) throw new Error(`the event stream has status ${answer.statusCode}`);
  // Closing the stream cuts off the response, which is an error.
  answer.on('error', () => {});
  answer.on(
    'data',
    createCutter(eventBytes, (event) => onDelay(microsSince(stampOfEvent(event)))),
  );
  return { send: () => {}, close: () => asked.destroy() };
}

async function openWebSocket(port: number, onDelay: (micros: number) => void): Promise<Line> {
  const handshake = {
    ...{ connection: 'upgrade', upgrade: 'websocket' },
    ...{ 'sec-websocket-version': '13', 'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==' },
  };
  const asked = request({
    ...{ port, host: '127.0.0.1', agent: false, path: '/proxied/echo' },
    headers: { ...headers, ...handshake },
  });
  const [socket, head] = await new Promise<[Duplex, Buffer]>((resolve, reject) => {
    asked.once('upgrade', (_response, socket, head) => resolve([socket, head])).once('error', reject);
    asked.once('response', ({ statusCode }) => reject(new Error(`the handshake was answered with ${statusCode}`)));
    asked.end();
  });
  const cut = createCutter(frameBytes, (frame) => onDelay(microsSince(stampOfFrame(frame))));
  cut(head);
  socket.on('data', cut).on('error', () => {});
  return { send: () => void socket.write(formatMaskedFrame(stamp())), close: () => socket.destroy() };
}
