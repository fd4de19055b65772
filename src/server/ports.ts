/** Finds out whether the ports of a process are free, before it or its threads listen on them. */
import { type AddressInfo, createServer, type Server } from 'node:net';
import { codeOf, listenError } from '#foundation';
import { bindingsOf, listenersOf, type PortOption, rejectSamePort } from './listeners.ts';
import type { Setup } from './options.ts';

/**
 * Listens on each port alone, and closes it again: a port on which several threads listen would also be open to another
 * process that listens in the same way. Resolves to the settings with the ports that were picked for 0. Rejects with a
 * user-facing Error, which names all ports that other processes use.
 */
export async function claimPorts(setup: Setup): Promise<Setup['settings']> {
  const bindings = bindingsOf(setup.settings);
  const picked: Partial<Record<PortOption, number>> = {};
  const settingsOfPorts = new Map<string, string>();
  const servers: Server[] = [];
  const taken: Error[] = [];
  try {
    for (const name of listenersOf(setup)) {
      const binding = bindings[name];
      if (binding.port === undefined) continue;
      rejectSamePort(settingsOfPorts, binding);
      const server = await listenAlone({ ...binding, port: binding.port }).catch((error: Error) => {
        if (codeOf(error) !== 'EADDRINUSE') throw error;
        taken.push(error);
      });
      if (server === undefined) continue;
      servers.push(server);
      const { port } = server.address() as AddressInfo;
      settingsOfPorts.set(`${binding.host} ${port}`, binding.portSetting);
      picked[binding.option] = port;
    }
  } finally {
    await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  }
  if (taken.length > 0) throw new Error(taken.map(({ message }) => message).join('\n'));
  return { ...setup.settings, ...picked };
}

function listenAlone(address: Parameters<typeof listenError>[1]): Promise<Server> {
  const { host, port } = address;
  const server = createServer();
  return new Promise((resolve, reject) => {
    server.once('error', (cause) => reject(listenError(cause, address)));
    server.listen({ host, port, exclusive: true }, () => resolve(server));
  });
}
