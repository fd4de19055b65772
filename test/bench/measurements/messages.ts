/** Measures small messages on open connections through a proxy: server-sent events and echoed WebSocket frames. */
import { type IncomingMessage, request } from 'node:http';
import type { Duplex } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
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
import { type Started, startBackends, startOn } from '../processes/start-servers.ts';
import { proxies } from '../rows/proxy-rows.ts';
import type { MeasuredRow } from '../table.ts';
import { median, quantile, takeTurns } from './samples.ts';

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

/** nginx is not configured for either kind. */
export async function measureMessages(directory: string): Promise<MeasuredRow[]> {
  const backends = await startBackends(directory);
  const measured = proxies.filter(({ name }) => name !== 'nginx');
  const started: Started[] = [];
  const rows: MeasuredRow[] = [];
  try {
    for (const { name, start } of measured) {
      const proxy = await startOn(start, directory, `messages-${name}`, backends);
      started.push(proxy);
      await untilReady(proxy.port, '/proxied/2', demoHeaders);
    }
    for (const kind of kinds) {
      for (const one of started) await measureRound(kind, one);
      const samples = await takeTurns(started, rounds, (one) => measureRound(kind, one));
      const lowerQuartile = (index: number, figure: keyof Sample) =>
        quantile(samples[index]?.map((one) => one[figure]) ?? [], 0.25);
      for (const [index, { name, title: proxy }] of measured.entries()) {
        const title = `${kind.name}: ${proxy}`;
        // The peer is the first proxy. The delay is to the client; for frames, to the upstream and back.
        const compare = (figure: keyof Sample) => ({
          figure: lowerQuartile(index, figure),
          peer: '@fastify/http-proxy',
          ratio: lowerQuartile(index, figure) / lowerQuartile(0, figure),
          ...(name === 'http-proxy' ? {} : { target: { ratioMax: 1 } }),
        });
        rows.push({ title, ...compare('cpuMicros'), unit: 'CPU us' });
        rows.push({ title: `${title}, delay`, ...compare('delayMicros'), unit: 'us' });
      }
    }
    return rows;
  } finally {
    await Promise.all([...started.map(({ server }) => server.stop()), backends.stop()]);
  }
}

/** Per message. */
interface Sample {
  readonly cpuMicros: number;
  readonly delayMicros: number;
}

async function measureRound({ open }: Kind, { port, server }: Started): Promise<Sample> {
  const delays: number[] = [];
  const onDelay = (micros: number) => void delays.push(micros);
  const opened = await Promise.all(Array.from({ length: connections }, () => open(port, onDelay)));
  const sender = setInterval(() => {
    for (const { send } of opened) send();
  }, everyMs);
  // Waits, because opening the connections also uses CPU time.
  await sleep(roundMs / 5);
  const before = await server.usage();
  delays.length = 0;
  await sleep(roundMs);
  const after = await server.usage();
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
    connection: 'upgrade',
    upgrade: 'websocket',
    'sec-websocket-version': '13',
    'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
  };
  const clientRequest = request({
    port,
    host: '127.0.0.1',
    agent: false,
    path: '/proxied/echo',
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
