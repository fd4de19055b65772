/** Pipelined responses that are still waiting when their connection is handed over: they close together with it. */
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import Koa, { type Context } from 'koa';
import { createAddresses, createRequestContext, createUpgrades } from '#http';
import { testServers } from '../../support/serve.ts';
import { createDeferred, eventually } from '../../support/waiting.ts';
import { speak } from '../../support/wire/peer.ts';

const get = 'GET / HTTP/1.1\r\nHost: a\r\n';

describe('closeWithConnection', () => {
  const servers = testServers();

  for (const [what, last] of [
    ['a CONNECT request', 'CONNECT b:443 HTTP/1.1\r\nHost: b:443\r\n\r\n'],
    ['an upgrade', `${get}Connection: upgrade\r\nUpgrade: websocket\r\n\r\n`],
  ] as const)
    it(`closes queued responses with their connection if ${what} follows, in a host's server too`, async () => {
      let [started, closed] = [0, 0];
      const app = new Koa().use(createRequestContext(createAddresses())).use(({ res }: Context) => {
        started += 1;
        res.once('close', () => {
          closed += 1;
        });
        return new Promise<void>(() => {});
      });
      const server = createServer(app.callback());
      server.on('upgrade', createUpgrades(() => true).listener(app.callback()));
      speak((await servers.listen(server)).port, `${get}\r\n`.repeat(4) + last);
      await eventually(() => assert.deepEqual([started, closed], [4, 4]));
    });

  it("closes the connection in the turn of a response that was cut off, in a host's server too", async () => {
    const cutOff = createDeferred();
    const app = new Koa().use(createRequestContext(createAddresses())).use(async (ctx: Context) => {
      if (ctx.path !== '/cut') await cutOff.promise;
      else ctx.res.once('close', cutOff.resolve).writeHead(200).destroy();
      ctx.body = ctx.path;
    });
    const { port } = await servers.http(app.callback());
    const requests = ['/whole', '/cut', '/later'].map((path) => `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`);
    assert.match(await speak(port, requests.join('')).closed, /^HTTP\/1\.1 200 OK\r\n(?:.+\r\n)+\r\n\/whole$/);
  });

  it("closes a request with its connection if its response ended before its body, in a host's server too", async () => {
    const closed = createDeferred();
    const app = new Koa().use(createRequestContext(createAddresses())).use((ctx: Context) => {
      ctx.req.once('close', closed.resolve);
      ctx.body = 'early';
    });
    const { port } = await servers.http(app.callback());
    const client = speak(port, 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhello');
    await client.until('early');
    client.socket.destroy();
    await closed.promise;
  });
});
