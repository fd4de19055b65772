/** Listens for a server of grpc-js so that it can stop like a killed process. */
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { type Server, ServerCredentials } from '@grpc/grpc-js';

export interface KillableServer {
  readonly port: number;
  /** Stops without notifying clients. */
  readonly stop: () => void;
}

export async function listenKillable(server: Server): Promise<KillableServer> {
  const injector = server.createConnectionInjector(ServerCredentials.createInsecure());
  const sockets = new Set<Socket>();
  const listener = createServer((socket) => {
    sockets.add(socket);
    injector.injectConnection(socket);
  });
  listener.listen(0, '127.0.0.1');
  await once(listener, 'listening');
  return {
    port: (listener.address() as AddressInfo).port,
    stop() {
      listener.close();
      for (const socket of sockets) socket.destroy();
      server.forceShutdown();
    },
  };
}
