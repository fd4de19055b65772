/** A port that refuses connections for as long as a test needs it. */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';

export interface RefusingPort {
  readonly port: number;
  readonly close: () => void;
}

/**
 * Uses the local port of an open connection: no process can listen on it until the connection closes. A listener's port
 * would not do, because after its release another process may get it before the test connects.
 */
export async function holdRefusingPort(): Promise<RefusingPort> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const accepted = once(server, 'connection');
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
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
