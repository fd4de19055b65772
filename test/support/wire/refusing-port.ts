/** A port that refuses connections for as long as a test needs it. */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';

export interface RefusingPort {
  readonly port: number;
  readonly close: () => void;
}

/**
 * The local end of a connection: no process listens on it, and none can, until it is closed. A port that was listened on
 * and given up may belong to another process by the time a test connects to it.
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
