/** 500 calls on one session while their service restarts, through the gateway and through Envoy. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import {
  type ClientHttp2Session,
  connect,
  createServer,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2';
import type { Socket } from 'node:net';
import { desksOf, mappingRecord } from '../support/desks.ts';
import { envoyConfiguration } from '../support/programs/envoy-configuration.ts';
import { freePort } from '../support/programs/free-port.ts';
import { isInstalled } from '../support/programs/installed.ts';
import { envoy, startProxy } from '../support/programs/proxy-process.ts';
import { type TestServers, testServers } from '../support/serve.ts';
import { createDeferred } from '../support/waiting.ts';

const calls = 500;
const emptyMessage = Buffer.alloc(5);
const grpc = { ':method': 'POST', ':path': '/test.Orders/Get', 'content-type': 'application/grpc', te: 'trailers' };

interface Service {
  /** The numbers of the calls that arrived, in order. */
  readonly received: readonly number[];
  /** Resolves when this many calls have arrived. */
  readonly hasReceived: (count: number) => Promise<void>;
  /** Answers the calls that arrived, and those that will. */
  readonly release: () => void;
  /** Accepts no more connections, and no more calls on those that are open. */
  readonly retire: () => void;
  /** Breaks all connections, as the end of a process does. */
  readonly kill: () => void;
}

/** Shares its port with the service that takes its place. */
async function startService(servers: TestServers, port: number): Promise<Service> {
  const received: number[] = [];
  const sessions = new Set<ServerHttp2Session>();
  const sockets = new Set<Socket>();
  const held = createDeferred();
  let count = Number.POSITIVE_INFINITY;
  const full = createDeferred();
  const server = createServer();
  server.on('connection', (socket) => void sockets.add(socket));
  server.on('session', (session) => void sessions.add(session));
  server.on('stream', async (stream, headers) => {
    stream.on('error', () => {}).resume();
    received.push(Number(headers['x-call']));
    if (received.length >= count) full.resolve();
    await held.promise;
    if (!stream.destroyed) answer(stream);
  });
  server.listen({ port, host: '127.0.0.1', reusePort: true });
  await once(server, 'listening');
  const kill = () => {
    server.close();
    for (const socket of sockets) socket.destroy();
  };
  servers.later(kill);
  return {
    received,
    hasReceived(expected) {
      count = expected;
      if (received.length >= count) full.resolve();
      return full.promise;
    },
    release: held.resolve,
    retire() {
      server.close();
      for (const session of sessions) session.close();
    },
    kill,
  };
}

function answer(stream: ServerHttp2Stream): void {
  stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true });
  stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
  stream.end(emptyMessage);
}

/** Resolves with the status of the call when its stream has ended, or with how the stream was reset. */
async function call(session: ClientHttp2Session, number: number): Promise<string> {
  const stream = session.request({ ...grpc, 'x-call': String(number) });
  let status: unknown;
  const note = (headers: IncomingHttpHeaders) => {
    status ??= headers['grpc-status'];
  };
  stream.on('response', note).on('trailers', note);
  stream.on('error', () => {}).resume();
  stream.end(emptyMessage);
  await once(stream, 'close');
  return `grpc-status ${status ?? `none, ${stream.rstCode}`}`;
}

const fronts = {
  'the gateway': true,
  Envoy: isInstalled(envoy.command),
};

for (const [front, isHere] of Object.entries(fronts))
  describe(`${calls} calls on one session through ${front}`, () => {
    const servers = testServers();
    const openDesk = desksOf(servers);
    if (!isHere) {
      it('needs envoy on the PATH');
      return;
    }

    async function openFront(target: number): Promise<ClientHttp2Session> {
      const session = connect(`http://127.0.0.1:${await frontPort(target)}`);
      session.on('error', () => {});
      servers.later(() => session.destroy());
      await once(session, 'remoteSettings');
      return session;
    }

    async function frontPort(target: number): Promise<number> {
      if (front === 'the gateway') {
        const records = [mappingRecord('orders', '/', `http://127.0.0.1:${target}`, { grpc: true })];
        return (await (await openDesk({ demo: false, config: { records } })).listen()).gateway.port;
      }
      const port = await freePort();
      const manager = { codec_type: 'HTTP2', http2_protocol_options: { max_concurrent_streams: 100 } };
      const config = envoyConfiguration({ port, target, manager, http2: true });
      const proxy = await startProxy(envoy, config, port);
      servers.later(proxy.remove);
      return proxy.port;
    }

    /** Starts all calls, and waits until as many as a session may have at once are in flight. */
    async function startCalls() {
      const port = await freePort();
      const first = await startService(servers, port);
      const session = await openFront(port);
      const results = Promise.all(Array.from({ length: calls }, (_, number) => call(session, number)));
      await first.hasReceived(session.remoteSettings.maxConcurrentStreams ?? 0);
      return { port, first, results };
    }

    it('all get a response from a service that completes what it has when another takes its place', async () => {
      const { port, first, results } = await startCalls();
      const second = await startService(servers, port);
      first.retire();
      for (const service of [first, second]) service.release();
      assert.deepEqual([...new Set(await results)], ['grpc-status 0']);
      assert.deepEqual(
        [...first.received, ...second.received].toSorted((a, b) => a - b),
        [...Array(calls).keys()],
      );
    });

    it('lose those that a service had when it was killed, and no other; none runs twice', async () => {
      const { port, first, results } = await startCalls();
      const second = await startService(servers, port);
      second.release();
      first.kill();
      const statuses = await results;
      const lost = statuses.flatMap((status, number) => (status === 'grpc-status 0' ? [] : [number]));
      assert.deepEqual([...new Set(lost.map((number) => statuses[number]))], ['grpc-status 14']);
      assert.deepEqual(
        lost,
        first.received.toSorted((a, b) => a - b),
      );
      assert.deepEqual(
        [...lost, ...second.received].toSorted((a, b) => a - b),
        [...Array(calls).keys()],
      );
    });

    // Envoy returns UNAVAILABLE for a call that the service has refused because it ends, unless its route has retries.
    if (front === 'the gateway')
      it('all get a response while other services take its place, again and again', async () => {
        const port = await freePort();
        let current = await startService(servers, port);
        current.release();
        const session = await openFront(port);
        const numbers = Array(2000).keys();
        const statuses: string[] = [];
        const next = async (): Promise<void> => {
          for (const number of numbers) {
            statuses.push(await call(session, number));
            if (statuses.length % calls > 0) continue;
            const last = current;
            current = await startService(servers, port);
            current.release();
            last.retire();
          }
        };
        await Promise.all(Array.from({ length: calls }, next));
        assert.equal(statuses.length, 2000);
        assert.deepEqual([...new Set(statuses)], ['grpc-status 0']);
      });
  });
