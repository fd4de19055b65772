/** Starts servers on free loopback ports, and closes them and their connections after a test or a group of tests. */
import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import { type AddressInfo, connect, createServer as createTcpServer, type Server, type Socket } from 'node:net';

export interface Served {
  readonly origin: string;
  readonly port: number;
}

export interface TestServers {
  readonly http: (listener: RequestListener) => Promise<Served>;
  /** For peers that do not speak HTTP or violate it. */
  readonly tcp: (onConnection: (socket: Socket) => void) => Promise<Served>;
  /** Serves a server that the test created. */
  readonly listen: (server: Server) => Promise<Served>;
  /** A port that refuses connections. */
  readonly refusing: () => Promise<Served>;
  /** Registers a function to run at the end, last one first. */
  readonly later: (close: () => unknown) => void;
}

/**
 * Keeps idle connections open, as the services of a careful operator do. A server that closes one just when a proxy
 * sends the next request on it makes Envoy respond with 503.
 */
const keepsIdle = 0;

/** Call it in a `describe`. Pass mocha's `after` if all tests of the `describe` share the servers. */
export function testServers(whenDone: typeof afterEach = afterEach): TestServers {
  let closers: (() => unknown)[] = [];

  whenDone(async () => {
    const closing = closers.reverse();
    closers = [];
    for (const close of closing) await close();
  });

  async function listen(server: Server): Promise<Served> {
    const sockets = new Set<Socket>();
    server.on('connection', (socket) => {
      sockets.add(socket);
      socket.once('close', () => sockets.delete(socket));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    closers.push(() => {
      for (const socket of sockets) socket.destroy();
      return new Promise((resolve) => server.close(resolve));
    });
    const { port } = server.address() as AddressInfo;
    return { origin: `http://127.0.0.1:${port}`, port };
  }

  return {
    http: (listener) => listen(createServer({ keepAliveTimeout: keepsIdle }, listener)),
    tcp: (onConnection) =>
      listen(createTcpServer((socket) => onConnection(socket.on('error', () => socket.destroy())))),
    listen,
    async refusing() {
      const { port, close } = await holdRefusingPort();
      closers.push(close);
      return { origin: `http://127.0.0.1:${port}`, port };
    },
    later: (close) => void closers.push(close),
  };
}

/**
 * A port that refuses connections. Uses the local port of an open connection: no process can listen on it until the connection closes. A listener's port
 * would not do, because after its release another process may get it before the test connects. Setting `localAddress`
 * binds the port explicitly. Otherwise the kernel may choose the same port for a socket that connects to it, and a
 * socket that is connected to itself is not refused: it receives what it sends.
 */
async function holdRefusingPort() {
  const server = createTcpServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const accepted = once(server, 'connection');
  const { port: peerPort } = server.address() as AddressInfo;
  const socket = connect({ port: peerPort, host: '127.0.0.1', localAddress: '127.0.0.1' });
  await Promise.all([once(socket, 'connect'), accepted]);
  const { port } = socket.address() as AddressInfo;
  return {
    port,
    close() {
      socket.destroy();
      server.close();
    },
  };
}
