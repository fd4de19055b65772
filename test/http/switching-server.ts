/** A server that may switch protocols, and what it does with those who ask. */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { createUpgrades, type HttpServerOptions, serveHttp, type Upgrades, upgradeOf } from '#http';
import type { TestServers } from '../support/serve.ts';
import { httpLimits } from '../support/wire/http-limits.ts';

/** Accepts whoever can be accepted, and sends back what comes; tells the others what they asked. */
export const echo: RequestListener = (req, res) => {
  const upgrade = upgradeOf(req);
  if (upgrade === undefined) {
    void tellBody(req, res);
    return;
  }
  res.setHeader('X-Kept', 'yes');
  const socket = upgrade.accept(upgrade.protocols[0] ?? '');
  socket.pipe(socket);
};

async function tellBody(req: IncomingMessage, res: ServerResponse) {
  res.end(`ordinary ${req.url} ${Buffer.concat(await req.toArray()).toString()}`);
}

/** Gives the port of a server that lives as long as the test. */
export function switchingServer(servers: TestServers) {
  return async function serving(
    handler: RequestListener,
    upgrades: Upgrades = createUpgrades((one) => one === 'websocket'),
    tls?: HttpServerOptions['tls'],
  ): Promise<number> {
    const server = await serveHttp({ ...httpLimits, handler, upgrades, tls });
    servers.later(() => Promise.all([server.close(0), upgrades.close(0)]));
    return server.port;
  };
}
