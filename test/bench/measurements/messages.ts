/** Measures small messages on open connections through a proxy: server-sent events and echoed WebSocket frames. */
import { mkdirSync } from 'node:fs';
import { type IncomingMessage, request } from 'node:http';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../../support/programs/free-port.ts';
import { demoHeaders, untilReady } from '../clients/requests.ts';
import {
  createSplitter,
  currentStamp,
  eventBytes,
  formatMaskedFrame,
  frameBytes,
  microsSince,
  stampOfEvent,
  stampOfFrame,
} from '../clients/timestamped-messages.ts';
import type { Child } from '../processes/child.ts';
import { startBackends } from '../processes/start-servers.ts';
import { type MeasuredProxy, proxies } from '../rows/proxy-rows.ts';
import { median, quantile } from './quantile.ts';

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
  readonly open: (port: number, onDelay: (micros: number) => void) => Promise<Connection>;
}

interface Connection {
  /** Is called every 10 ms. Does nothing for events, which the upstream sends on its own. */
  readonly send: () => void;
  readonly close: () => void;
}

const kinds: readonly Kind[] = [
  { name: 'server-sent event', open: openEvents },
  { name: 'WebSocket frame round trip', open: openWebSocket },
];

/** Together they use a fifth of a core. They send at the same moment, so the delay includes a short queue. */
const connections = 64;
const everyMs = 10;
const rounds = 9;
const roundMs = 1000;

/** The proxies take turns, so that other work disturbs all equally. nginx is not configured for either kind. */
export async function measureMessages(parent: string): Promise<MessageFigures[]> {
  const backends = await startBackends(parent);
  const started: Started[] = [];
  try {
    for (const proxy of proxies.filter(({ name }) => name !== 'nginx')) {
      const directory = join(parent, `messages-${proxy.name}`);
      mkdirSync(directory);
      const port = await freePort();
      started.push({ proxy, port, child: await proxy.start(port, directory, backends) });
      await untilReady(port, '/proxied/2', demoHeaders);
    }
    const figures: MessageFigures[] = [];
    for (const kind of kinds) figures.push(...(await measureKind(kind, started)));
    return figures;
  } finally {
    await Promise.all([...started.map(({ child }) => child.stop()), backends.stop()]);
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
    const lowerQuartile = (figure: keyof Sample) => quantile(samples[index]?.map((one) => one[figure]) ?? [], 0.25);
    return {
      ...{ kind: kind.name, proxy: name, title },
      cpuMicrosPerMessage: lowerQuartile('cpuMicros'),
      delayMicros: lowerQuartile('delayMicros'),
    };
  });
}

async function measureRound({ open }: Kind, { port, child }: Started): Promise<Sample> {
  const delays: number[] = [];
  const onDelay = (micros: number) => void delays.push(micros);
  const opened = await Promise.all(Array.from({ length: connections }, () => open(port, onDelay)));
  const sender = setInterval(() => {
    for (const { send } of opened) send();
  }, everyMs);
  // Waits, because opening the connections also uses CPU time.
  await sleep(roundMs / 5);
  const before = await child.usage();
  delays.length = 0;
  await sleep(roundMs);
  const after = await child.usage();
  const sample = { cpuMicros: (after.cpuMicros - before.cpuMicros) / delays.length, delayMicros: median(delays) };
  clearInterval(sender);
  for (const { close } of opened) close();
  return sample;
}

async function openEvents(port: number, onDelay: (micros: number) => void): Promise<Connection> {
  const clientRequest = request({
    port,
    host: '127.0.0.1',
    agent: false,
    path: '/proxied/events',
    headers: demoHeaders,
  });
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    clientRequest.once('response', resolve).once('error', reject).end();
  });
  if (response.statusCode !== 200) throw new Error(`the event stream has status ${response.statusCode}`);
  // Closing the stream cuts off the response, which is an error.
  response.on('error', () => {});
  response.on(
    'data',
    createSplitter(eventBytes, (event) => onDelay(microsSince(stampOfEvent(event)))),
  );
  return { send: () => {}, close: () => clientRequest.destroy() };
}

async function openWebSocket(port: number, onDelay: (micros: number) => void): Promise<Connection> {
  const handshake = {
    ...{ connection: 'upgrade', upgrade: 'websocket' },
    ...{ 'sec-websocket-version': '13', 'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==' },
  };
  const clientRequest = request({
    ...{ port, host: '127.0.0.1', agent: false, path: '/proxied/echo' },
    headers: { ...demoHeaders, ...handshake },
  });
  const [socket, head] = await new Promise<[Duplex, Buffer]>((resolve, reject) => {
    clientRequest.once('upgrade', (_response, socket, head) => resolve([socket, head])).once('error', reject);
    clientRequest.once('response', ({ statusCode }) => reject(new Error(`the handshake has status ${statusCode}`)));
    clientRequest.end();
  });
  const split = createSplitter(frameBytes, (frame) => onDelay(microsSince(stampOfFrame(frame))));
  split(head);
  socket.on('data', split).on('error', () => {});
  return { send: () => void socket.write(formatMaskedFrame(currentStamp())), close: () => socket.destroy() };
}
