/** Workarounds for Node's HTTP server: 100 Continue, clients that do not read, lost `close` events, hooks before the head. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Agent, createServer, get, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import Koa, { type Context } from 'koa';
import request from 'supertest';
import { beforeHead, createAddresses, createRequestContext, createUpgrades, type HttpServerOptions } from '#http';
import { testServers } from '../../support/serve.ts';
import { createDeferred, eventually } from '../../support/waiting.ts';
import { startHttp } from '../../support/wire/http-server.ts';
import { speak, upgradeRequest } from '../../support/wire/peer.ts';

const expectRequest = 'POST / HTTP/1.1\r\nHost: desk.test\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n';
const continueResponse = 'HTTP/1.1 100 Continue\r\n\r\n';

const servers = testServers();

async function startClient(handler: RequestListener, text = expectRequest) {
  const { port } = await startHttp(servers, { handler });
  return speak(port, text);
}

describe('sendContinueOnRead', () => {
  const echo: RequestListener = async (request, response) => {
    response.setHeader('Connection', 'close').end(await text(request));
  };

  it('sends 100 Continue once, when the body is first read', async () => {
    const [reached, wanted] = [createDeferred(), createDeferred()];
    const handler: RequestListener = async (request, response) => {
      reached.resolve();
      await wanted.promise;
      echo(request, response);
    };
    const { socket, until, received, closed } = await startClient(handler);
    await reached.promise;
    assert.equal(socket.bytesRead, 0);
    wanted.resolve();
    await until(continueResponse);
    assert.equal(received(), continueResponse);
    socket.write('hello');
    const response = (await closed).slice(continueResponse.length);
    assert.match(response, /^HTTP\/1\.1 200 OK\r\n.*\r\n\r\nhello$/s);
  });

  it('sends the 100 Continue of a pipelined request in its turn', async () => {
    const handler: RequestListener = (request, response) => {
      if (request.method === 'POST') echo(request, response);
      else setImmediate(() => response.end('first'));
    };
    const { socket, until, closed } = await startClient(handler, `GET / HTTP/1.1\r\nHost: a\r\n\r\n${expectRequest}`);
    await until(`first${continueResponse}`);
    socket.write('hello');
    assert.match(await closed, /first(?:HTTP\/1\.1 100 Continue\r\n\r\n)HTTP\/1\.1 200 OK\r\n(?:.+\r\n)+\r\nhello$/);
  });

  it('sends no 100 Continue if the body is not read, and closes the connection', async () => {
    const reject: RequestListener = (_request, response) => response.writeHead(401).end();
    const response = await (await startClient(reject)).closed;
    assert.match(response, /^HTTP\/1\.1 401 Unauthorized\r\n[\s\S]*\r\nConnection: close\r\n/);
    assert.ok(!response.includes('100 Continue'));
  });

  it('ignores other expectations', async () => {
    const { closed } = await startClient(echo, `${expectRequest.replace('100-continue', 'a-miracle')}hello`);
    assert.match(await closed, /^HTTP\/1\.1 200 OK\r\n[\s\S]*\r\n\r\nhello$/);
  });
});

/** Does not fit into the buffers of the two sockets. */
const large = Buffer.alloc(32 * 1024 * 1024);

describe('closeStalledResponses', () => {
  const serving = async (handler: RequestListener, options: Partial<HttpServerOptions>) =>
    (await startHttp(servers, { handler, ...options })).port;

  for (const [what, request] of [
    ['', 'GET / HTTP/1.1\r\nHost: x\r\n\r\n'],
    [', also after an upgrade request', upgradeRequest('/')],
  ] as const)
    it(`closes the response and the connection of a client that does not read${what}`, async () => {
      const responding = new Promise<ServerResponse>((resolve) => {
        const handler: RequestListener = (_request, response) => resolve(response.end(large));
        const upgrades = createUpgrades(() => true);
        void serving(handler, { responseIdleTimeoutMs: 300, upgrades }).then((port) => {
          const socket = connect(port, '127.0.0.1', () => socket.write(request)).pause();
          servers.later(() => socket.destroy());
          socket.on('error', () => {});
        });
      });
      const response = await responding;
      await once(response, 'close');
      assert.equal(response.req.socket.destroyed, true);
    });

  async function responseOf(port: number, agent: Agent | false = false) {
    return (await once(get({ port, host: '127.0.0.1', agent }), 'response'))[0] as IncomingMessage;
  }

  it('does not close the connection of a client that reads', async () => {
    const body = large.subarray(0, large.length / 4);
    const port = await serving((_request, response) => response.end(body), { responseIdleTimeoutMs: 500 });
    let taken = 0;
    for await (const chunk of await responseOf(port)) taken += (chunk as Buffer).length;
    assert.equal(taken, body.length);
  });

  it('does not close the connection of a client that waits for the next event of a stream', async () => {
    let send = () => {};
    const stream: RequestListener = (_request, response) => {
      response.writeHead(200).write('one');
      send = () => response.end('two');
    };
    const response = await responseOf(await serving(stream, { responseIdleTimeoutMs: 100 }));
    await once(response, 'data');
    setTimeout(send, 250);
    const [rest] = await once(response, 'data');
    assert.equal(String(rest), 'two');
  });

  it('keeps no response in memory after its end', async () => {
    let last: WeakRef<ServerResponse> | undefined;
    const respond: RequestListener = (_request, response) => {
      last = new WeakRef(response.end('x'));
    };
    const port = await serving(respond, {});
    const agent = new Agent({ keepAlive: true });
    servers.later(() => agent.destroy());
    await text(await responseOf(port, agent));
    setFlagsFromString('--expose-gc');
    const collectGarbage = runInNewContext('gc');
    await eventually(() => {
      collectGarbage();
      assert.equal(last?.deref(), undefined);
    });
  });

  it('leaves connections between requests to the keep-alive time-out', async () => {
    const times = { responseIdleTimeoutMs: 60_000, keepAliveTimeoutMs: 20 };
    const port = await serving((_request, response) => response.end('x'), times);
    const agent = new Agent({ keepAlive: true });
    servers.later(() => agent.destroy());
    const response = await responseOf(port, agent);
    const ended = once(response.socket, 'close');
    response.resume();
    await ended;
  });
});

describe('closeWithConnection', () => {
  const head = 'GET / HTTP/1.1\r\nHost: a\r\n';

  for (const [what, last] of [
    ['a CONNECT request', 'CONNECT b:443 HTTP/1.1\r\nHost: b:443\r\n\r\n'],
    ['an upgrade', `${head}Connection: upgrade\r\nUpgrade: websocket\r\n\r\n`],
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
      speak((await servers.listen(server)).port, `${head}\r\n`.repeat(4) + last);
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

describe('beforeHead', () => {
  const recordWrites = (respond: (res: ServerResponse) => void) => {
    const written: string[] = [];
    const listener: RequestListener = (_req, res) => {
      beforeHead(res, () => {
        written.push('outer');
        res.setHeader('X-Last', 'outer');
      });
      beforeHead(res, () => {
        written.push('inner');
        res.setHeader('X-Last', 'inner');
        res.appendHeader('Link', '</b>');
      });
      res.setHeader('X-Last', 'first').setHeader('Link', '</a>');
      respond(res);
    };
    return { written, listener };
  };

  const responses: Readonly<Record<string, (res: ServerResponse) => void>> = {
    end: (res) => res.end('x'),
    write: (res) => res.write('x', () => res.end()),
    flushHeaders: (res) => {
      res.flushHeaders();
      res.end('x');
    },
    writeHead: (res) => res.writeHead(200, { 'X-Own': '1' }).end('x'),
    'writeHead and the same headers': (res) => res.writeHead(200, { 'X-Last': 'own', Link: '</a>' }).end('x'),
    'writeHead, a reason and the same headers': (res) =>
      res.writeHead(200, 'Fine', { 'x-last': 'own', link: ['</a>'] }).end('x'),
    'writeHead and the same headers as a list': (res) => res.writeHead(200, ['X-Last', 'own', 'Link', '</a>']).end('x'),
    'Early Hints first': (res) => res.writeEarlyHints({ link: '</c>; rel=preload' }, () => res.end('x')),
  };
  for (const [how, respond] of Object.entries(responses))
    it(`calls each hook once, the outermost last, if the response begins with ${how}`, async () => {
      const { written, listener } = recordWrites(respond);
      const { headers } = await request(listener).get('/').expect(200);
      assert.deepEqual(written, ['inner', 'outer']);
      assert.deepEqual([headers['x-last'], headers['link']], ['outer', '</a>, </b>']);
    });

  it('calls the hooks for the next head if Node rejected one', async () => {
    const { written, listener } = recordWrites((res) => {
      assert.throws(() => res.writeHead(200, { 'X-Own': 'a\nb' }), { code: 'ERR_INVALID_CHAR' });
      assert.deepEqual(written, []);
      res.removeHeader('Link');
      res.writeHead(500, 'Broken').end();
    });
    const { headers } = await request(listener).get('/').expect(500);
    assert.equal(headers['link'], '</b>');
  });

  it('leaves a second head to Node, which rejects it', async () => {
    let rejection: unknown;
    const { written, listener } = recordWrites((res) => {
      res.writeHead(204).end();
      try {
        res.writeHead(200);
      } catch (thrown) {
        rejection = thrown;
      }
    });
    await request(listener).get('/').expect(204);
    assert.equal((rejection as { code?: string }).code, 'ERR_HTTP_HEADERS_SENT');
    assert.equal(written.length, 2);
  });
});
