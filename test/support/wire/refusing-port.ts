/** A port that refuses connections for as long as a test needs it. */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';

export interface RefusingPort {
  readonly port: number;
  readonly close: () => void;
}

/**
 * Uses the local port of an open connection: no process can listen on it until the connection closes. A listener's port
 * would not do, because after its release another process may get it before the test connects. Setting `localAddress`
 * binds the port explicitly. Otherwise the kernel may choose the same port for a socket that connects to it, and a
 * socket that is connected to itself is not refused: it receives what it sends.
 */
export async function holdRefusingPort(): Promise<RefusingPort> {
  const server = createServer().listen(0, '127.0.0.1');
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
