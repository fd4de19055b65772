/** A test server that accepts protocol upgrades. */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { createUpgrades, type HttpServerOptions, type Upgrades, upgradeOf } from '#http';
import type { TestServers } from '../../support/serve.ts';
import { startHttp } from '../../support/wire/http-server.ts';

/** Accepts an upgrade and echoes all data. Responds to any other request with its path and body. */
export const echo: RequestListener = (req, res) => {
  const upgrade = upgradeOf(req);
  if (upgrade === undefined) {
    void sendBody(req, res);
    return;
  }
  res.setHeader('X-Kept', 'yes');
  const socket = upgrade.accept(upgrade.protocols[0] ?? '');
  socket.pipe(socket);
};

async function sendBody(req: IncomingMessage, res: ServerResponse) {
  res.end(`ordinary ${req.url} ${Buffer.concat(await req.toArray()).toString()}`);
}

/** Returns a function that starts a server for the current test and resolves with its port. */
export function switchingServer(servers: TestServers) {
  return async function serving(
    handler: RequestListener,
    upgrades: Upgrades = createUpgrades((one) => one === 'websocket'),
    tls?: HttpServerOptions['tls'],
  ): Promise<number> {
    const { port } = await startHttp(servers, { handler, upgrades, tls });
    servers.later(() => upgrades.close(0));
    return port;
  };
}
