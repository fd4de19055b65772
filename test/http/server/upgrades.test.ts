/** Upgraded connections, on our server and on a host's, and upgrade requests that are not accepted. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import { constants } from 'node:http2';
import { Readable } from 'node:stream';
import { connect as connectTls } from 'node:tls';
import { createUpgrades, finalStatus, type HttpServerOptions, type Upgrades, upgradeOf } from '#http';
import { testServers } from '../../support/serve.ts';
import { temporaryFiles } from '../../support/temporary-files.ts';
import { eventually } from '../../support/waiting.ts';
import { makeCertificate } from '../../support/wire/certificate.ts';
import { startConnectClient } from '../../support/wire/extended-connect.ts';
import { startHttp } from '../../support/wire/http-server.ts';
import { peerOf, speak, upgradeRequest } from '../../support/wire/peer.ts';
import { bodyOf } from '../../support/wire/raw-client.ts';

/** Accepts an upgrade and echoes all data. Responds to any other request with its path and body. */
const echo: RequestListener = (req, res) => {
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

const servers = testServers();

/** Starts a server for the current test and resolves with its port. */
async function serving(
  handler: RequestListener,
  upgrades: Upgrades = createUpgrades((one) => one === 'websocket'),
  tls?: HttpServerOptions['tls'],
): Promise<number> {
  const { port } = await startHttp(servers, { handler, upgrades, tls });
  servers.later(() => upgrades.close(0));
  return port;
}

describe('createUpgrades', () => {
  const writeFiles = temporaryFiles();

  it('sends 101 with the headers of the response and hands over the connection', async () => {
    const client = speak(await serving(echo), upgradeRequest('/chat'));
    await client.until('\r\n\r\n');
    assert.match(client.received(), /^HTTP\/1\.1 101 Switching Protocols\r\n/);
    assert.match(client.received(), /^Connection: Upgrade\r$/m);
    assert.match(client.received(), /^Upgrade: websocket\r$/m);
    assert.match(client.received(), /^X-Kept: yes\r$/m);
    assert.doesNotMatch(client.received(), /^(?:Content-Length|Transfer-Encoding|Keep-Alive):/im);
    client.socket.end('after');
    assert.match(await client.closed, /\r\n\r\nafter$/);
  });

  it('does the same over TLS', async function () {
    const pair = await makeCertificate(await writeFiles(), 'IP:127.0.0.1');
    if (pair === undefined) return this.skip();
    const port = await serving(echo, undefined, pair);
    const socket = connectTls({ port, host: '127.0.0.1', ca: pair.cert });
    const { until, closed } = peerOf(socket);
    socket.write(`${upgradeRequest('/chat')}early`);
    await until('\r\n\r\nearly');
    socket.end(' and late');
    assert.match(await closed, /early and late$/);
  });

  it('sends a long ordinary response as fast as the client reads', async () => {
    const size = 4 * 1024 * 1024;
    const port = await serving((_req, res) => void Readable.from(chunks(size)).pipe(res));
    const { socket, closed } = speak(port, upgradeRequest('/chat'));
    await once(socket, 'data');
    socket.pause();
    setImmediate(() => socket.resume());
    assert.equal((await closed).match(/z/g)?.length, size);
  });

  for (const leave of ['end', 'destroy'] as const)
    it(`closes the response when the client disconnects before it is sent (${leave})`, async () => {
      const left = new Promise<ServerResponse>((resolve) => {
        void serving((_req, res) => {
          res.once('close', () => resolve(res));
          client?.socket[leave]();
        }).then((port) => {
          client = speak(port, upgradeRequest('/chat'));
        });
      });
      let client: ReturnType<typeof speak> | undefined;
      assert.equal((await left).destroyed, true);
      await client?.closed;
    });

  it('accepts one of several protocols that the client offers', async () => {
    const client = speak(await serving(echo), upgradeRequest('/chat', [], 'odd/2, WebSocket'));
    await client.until('HTTP/1.1 101 ');
    client.socket.destroy();
  });

  it('keeps the order of pipelined responses', async () => {
    const waiting: ServerResponse[] = [];
    const port = await serving((req, res) => {
      if (waiting.push(res) < 2) return;
      waiting.forEach((one, index) => void one.end(`${index} ${upgradeOf(req) === undefined}`));
    });
    const client = speak(port, `GET /first HTTP/1.1\r\nHost: a\r\n\r\n${upgradeRequest('/chat')}`);
    await client.until('1 true');
    assert.match(client.received(), /0 true[\s\S]*1 true$/);
    client.socket.destroy();
  });

  it('keeps upgraded connections open until the deadline, then closes them', async () => {
    const upgrades = createUpgrades(() => true);
    const client = speak(await serving(echo, upgrades), upgradeRequest('/chat'));
    await client.until('HTTP/1.1 101 ');
    const closed = upgrades.close(50);
    client.socket.write('still here');
    await client.until('still here');
    await closed;
    await client.closed;
  });

  it('stops waiting when the last connection closes, and rejects new ones', async () => {
    const upgrades = createUpgrades(() => true);
    const port = await serving(echo, upgrades);
    const client = speak(port, upgradeRequest('/chat'));
    await client.until('HTTP/1.1 101 ');
    const closed = upgrades.close(60_000);
    assert.match(
      await speak(port, upgradeRequest('/late')).closed,
      /^HTTP\/1\.1 503 .*^Retry-After: 1\r$.*is stopping/ms,
    );
    client.socket.end();
    await closed;
  });

  describe("on a host's server, which emits every upgrade request,", () => {
    const switched = createUpgrades(() => true);

    async function hosting(handler: RequestListener) {
      const server = createServer(handler).on('upgrade', switched.listener(handler));
      return (await servers.listen(server)).port;
    }

    it('works in the same way', async () => {
      const client = speak(await hosting(echo), `${upgradeRequest('/chat')}early`);
      await client.until('\r\n\r\nearly');
      client.socket.destroy();
    });

    it('rejects a request with a body, which would not be parsed', async () => {
      const response = await speak(await hosting(echo), upgradeRequest('/chat', ['Content-Length: 3'])).closed;
      assert.match(response, /^HTTP\/1\.1 400 /);
      assert.match(bodyOf(response), /must not have a body/);
    });

    it('responds with 501 to CONNECT, if it emits that too', async () => {
      const server = createServer().on('connect', switched.listener(echo));
      const { port } = await servers.listen(server);
      const response = await speak(port, 'CONNECT elsewhere:443 HTTP/1.1\r\nHost: elsewhere:443\r\n\r\n').closed;
      assert.match(response, /^HTTP\/1\.1 501 /);
    });

    it('closes the connection of a client that did not wait for the previous response', async () => {
      const port = await hosting(() => {});
      const client = speak(port, `GET /first HTTP/1.1\r\nHost: a\r\n\r\n${upgradeRequest('/chat')}`);
      assert.equal(await client.closed, '');
    });
  });
});

describe('createUpgrades over HTTP/2', () => {
  async function connecting(handler: RequestListener, upgrades = createUpgrades((one) => one === 'websocket')) {
    const { port } = await startHttp(servers, { handler, upgrades, http2: true });
    servers.later(() => upgrades.close(0));
    return startConnectClient(servers, `http://127.0.0.1:${port}`);
  }

  it('responds to an extended CONNECT with 200 and the headers of the response, and hands over the stream', async () => {
    const { open } = await connecting(echo);
    const client = open('/chat');
    client.socket.write('early');
    const { date, ...head } = await client.response;
    assert.equal(typeof date, 'string');
    assert.deepEqual(Object.entries(head), [
      [':status', 200],
      ['x-kept', 'yes'],
    ]);
    await client.until('early');
    client.socket.end(' and late');
    assert.equal(await client.closed, 'early and late');
    assert.equal(client.socket.rstCode, 0);
  });

  it('serves it as the GET with which a client of HTTP/1.1 asks for the protocol', async () => {
    const seen: unknown[] = [];
    const { open } = await connecting((req, res) => {
      const { 'sec-websocket-key': key, ...headers } = req.headers;
      seen.push(req.method, req.url, headers, Buffer.from(String(key), 'base64').length);
      res.writeHead(403).end();
    });
    const client = open('/chat?a=1', { ':authority': 'a', 'sec-websocket-version': '13' });
    assert.equal((await client.response)[':status'], 403);
    await client.closed;
    const headers = { host: 'a', connection: 'Upgrade', upgrade: 'websocket', 'sec-websocket-version': '13' };
    assert.deepEqual(seen, ['GET', '/chat?a=1', headers, 16]);
  });

  it('keeps a key that the client sends, and what becomes of it, for a client behind a proxy', async () => {
    const { open } = await connecting((req, res) => {
      const upgrade = upgradeOf(req);
      assert.ok(upgrade);
      res.setHeader('Sec-WebSocket-Accept', String(upgrade.webSocketAccept));
      upgrade.accept('websocket').end();
    });
    // The example of RFC 6455 section 1.3.
    const client = open('/chat', { 'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==' });
    assert.equal((await client.response)['sec-websocket-accept'], 's3pPLMBiTxaQ9kYGzzhZRbK+xOo=');
    client.socket.end();
    await client.closed;
  });

  it('carries 4 MiB both ways at the pace of the slower side', async () => {
    const { open } = await connecting(echo);
    const { socket, response } = open('/chat');
    await response;
    const size = 4 * 1024 * 1024;
    let received = 0;
    socket.removeAllListeners('data').on('data', (chunk: Buffer) => {
      received += chunk.length;
      socket.pause();
      setImmediate(() => socket.resume());
    });
    Readable.from(chunks(size)).pipe(socket);
    await once(socket, 'end');
    assert.equal(received, size);
  });

  it('responds with 501 if a success would not be a switch, and ends the stream', async () => {
    const statuses: number[] = [];
    const { open } = await connecting((_req, res) => {
      res.on('close', () => statuses.push(finalStatus(res)));
      res.end('an ordinary page');
    });
    const client = open('/page');
    assert.equal((await client.response)[':status'], 501);
    assert.match(await client.closed, /"code":501/);
    await eventually(() => assert.deepEqual(statuses, [501]));
  });

  it('counts each stream of a connection as one that has switched', async () => {
    const { open } = await connecting(
      echo,
      createUpgrades(() => true, 2),
    );
    const [first, second] = [open('/first'), open('/second')];
    await Promise.all([first.response, second.response]);
    assert.equal((await open('/third').response)[':status'], 503);
    first.socket.end();
    await first.closed;
    await eventually(async () => assert.equal((await open('/fourth').response)[':status'], 200));
  });

  it('keeps switched streams open until the deadline, then resets them, and rejects new ones', async () => {
    const upgrades = createUpgrades(() => true);
    const { open } = await connecting(echo, upgrades);
    const client = open('/chat');
    await client.response;
    const closed = upgrades.close(50);
    assert.equal((await open('/late').response)[':status'], 503);
    client.socket.write('still here');
    await client.until('still here');
    await closed;
    await client.closed;
    assert.equal(client.socket.rstCode, constants.NGHTTP2_CANCEL);
  });

  it('is not offered by a server without upgrades', async () => {
    const { port } = await startHttp(servers, { http2: true });
    const { session } = await startConnectClient(servers, `http://127.0.0.1:${port}`);
    assert.notEqual(session.remoteSettings.enableConnectProtocol, true);
  });
});

function* chunks(size: number) {
  const chunk = 'z'.repeat(65_536);
  for (let sent = 0; sent < size; sent += chunk.length) yield chunk;
}

const http = ['GET', 'Host: a', 'Connection: Upgrade', 'Upgrade: websocket'];

describe('a request that is not upgraded', () => {
  describe('is served like any other, with its body and a persistent connection:', () => {
    function check(what: string, request: readonly string[], expected: string, body = '') {
      it(what, async () => {
        const [method, ...headers] = request;
        const text = [`${method} /first HTTP/1.1`, ...headers, '', body].join('\r\n');
        const client = speak(await serving(echo), text);
        await client.until(`ordinary ${expected}`);
        client.socket.end('GET /next HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n');
        assert.match(await client.closed, /ordinary \/next $/);
      });
    }

    const asks = http.slice(0, -1);
    const chunked = 'Transfer-Encoding: chunked';
    check('a protocol that is not allowed', [...asks, 'Upgrade: h2c'], '/first');
    check('an upgrade with a body', [...http, 'Content-Length: 3'], '/first abc', 'abc');
    check('an upgrade with a body in chunks', [...http, chunked], '/first abc', '3\r\nabc\r\n0\r\n\r\n');
    check('an Upgrade header that Connection does not list', ['GET', 'Host: a', 'Upgrade: websocket'], '/first');
    check(
      'the first request of a client that prefers HTTP/2',
      ['POST', 'Host: a', 'Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2c', 'HTTP2-Settings: AA', chunked],
      '/first abc',
      '3\r\nabc\r\n0\r\n\r\n',
    );
  });

  it('over HTTP/1.0 gets an ordinary response', async () => {
    const response = await speak(
      await serving(echo),
      'GET /old HTTP/1.0\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n',
    ).closed;
    assert.match(response, /^HTTP\/1\.1 200 [\s\S]*ordinary \/old $/);
  });

  it('without Host gets a 400, like any request', async () => {
    const port = await serving(echo);
    const response = await speak(port, 'GET / HTTP/1.1\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n').closed;
    assert.match(response, /^HTTP\/1\.1 400 /);
  });
});
