/** Pipelined requests: how many are processed at once, the order of responses, and when a connection closes. */
import assert from 'node:assert/strict';
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { connect as connectTls } from 'node:tls';
import { createUpgrades, type HttpServerOptions, upgradeOf } from '#http';
import { testServers } from '../../support/serve.ts';
import { temporaryFiles } from '../../support/temporary-files.ts';
import { createDeferred, eventually } from '../../support/waiting.ts';
import { makeCertificate } from '../../support/wire/certificate.ts';
import { startHttp } from '../../support/wire/http-server.ts';
import { peerOf, speak } from '../../support/wire/peer.ts';
import { sendRaw } from '../../support/wire/raw-client.ts';

const page = 'x'.repeat(24 * 1024);
const get = (path: string, more = '') => `GET ${path} HTTP/1.1\r\nHost: a\r\n${more}\r\n`;
const many = (length: number, last = '') =>
  Array.from({ length }, (_, index) => get(`/${index}`, index === length - 1 ? last : '')).join('');

describe('pipelined requests', () => {
  const writeFiles = temporaryFiles();

  const servers = testServers();

  /** Starts a server that counts its open requests over all connections. */
  async function serving({ handler, ...options }: Partial<HttpServerOptions>) {
    const counts = { open: 0, most: 0, seen: [] as string[] };
    const counting = (request: IncomingMessage, response: ServerResponse) => {
      counts.seen.push(request.url ?? '');
      counts.open += 1;
      counts.most = Math.max(counts.most, counts.open);
      response.prependOnceListener('close', () => {
        counts.open -= 1;
      });
      (handler ?? ((_request, res) => void setImmediate(() => res.end(page))))(request, response);
    };
    const { port } = await startHttp(servers, { ...options, handler: counting });
    return { port, counts };
  }

  it('are processed a few at a time on each connection, however many arrive together', async () => {
    const held: ServerResponse[] = [];
    const { port, counts } = await serving({ handler: (_request, response) => void held.push(response) });
    const sockets = Array.from({ length: 10 }, () => connect(port, '127.0.0.1').on('error', () => {}));
    for (const socket of sockets) socket.write(many(100));
    await eventually(() => assert.equal(counts.open, 80));
    for (const response of held.splice(0)) response.end(page);
    await eventually(() => assert.equal(counts.seen.length, 160));
    assert.equal(counts.most, 80);
    for (const socket of sockets) socket.destroy();
    await eventually(() => assert.equal(counts.open, 0));
    assert.equal(counts.seen.length, 160);
  });

  it('close the connection if too many are waiting across all connections, and later ones are served', async () => {
    const handler: RequestListener = (request, response) => void (request.url === '/' && response.end('ok'));
    const { port, counts } = await serving({ handler });
    const sockets = Array.from({ length: 11 }, () => connect(port, '127.0.0.1').on('error', () => {}));
    for (const socket of sockets) socket.write(many(1000));
    await eventually(() => assert.ok(sockets.some(({ destroyed }) => destroyed)));
    assert.match(await sendRaw(port, get('/', 'Connection: close\r\n')), /\r\n\r\nok$/);
    for (const socket of sockets) socket.destroy();
    await eventually(() => assert.equal(counts.open, 0));
    const responses = await sendRaw(port, get('/').repeat(19) + get('/', 'Connection: close\r\n'));
    assert.equal(responses.match(/\r\n\r\nok/g)?.length, 20);
  });

  it('wait while the client does not read earlier responses', async () => {
    const handler: RequestListener = (_request, response) => void response.end(page.repeat(100));
    const { port, counts } = await serving({ handler });
    const socket = connect(port, '127.0.0.1').pause();
    socket.write(many(1000));
    // The first responses fit into the buffers of the operating system.
    await eventually(() => assert.ok(counts.seen.length > 8 || counts.open === 8));
    assert.equal(counts.most, 8);
    socket.destroy();
    await eventually(() => assert.equal(counts.open, 0));
    assert.ok(counts.seen.length < 100);
  });

  it('do not starve other connections', async () => {
    let one: Socket | undefined;
    // Sent after the crowd has started, so it is served early only if there are turns of the event loop in between.
    const handler: RequestListener = ({ url }, response) => {
      if (url === '/0') one?.write(get('/second'));
      response.end('ok');
    };
    const { port, counts } = await serving({ handler });
    one = connect(port, '127.0.0.1').resume();
    one.write(get('/first'));
    await eventually(() => assert.equal(counts.seen.length, 1));
    const crowd = connect(port, '127.0.0.1').resume();
    crowd.write(many(900));
    await eventually(() => assert.equal(counts.seen.length, 902));
    assert.ok(counts.seen.indexOf('/second') < 800);
    for (const socket of [crowd, one]) socket.destroy();
  });

  it('all receive responses in order if the client reads', async () => {
    const handler: RequestListener = ({ url }, response) => void setImmediate(() => response.end(`${url} ${page}`));
    const { port, counts } = await serving({ handler, pipelineMax: 3 });
    const paths = (await sendRaw(port, many(500, 'Connection: close\r\n'))).match(/\/\d+ (?=x)/g);
    assert.deepEqual(
      paths,
      counts.seen.map((path) => `${path} `),
    );
    assert.equal(paths?.length, 500);
    assert.equal(counts.most, 3);
  });

  it('stop counting as waiting when they are served, so later connections can send as many again', async () => {
    const handler: RequestListener = (_request, response) => void response.end('ok');
    const { port } = await serving({ handler, waitingMax: 100 });
    for (let round = 0; round < 11; round += 1) {
      assert.equal((await sendRaw(port, many(100, 'Connection: close\r\n'))).match(/\r\n\r\nok/g)?.length, 100);
    }
  });

  it('all receive responses over TLS too', async function () {
    const tls = await makeCertificate(await writeFiles(), 'IP:127.0.0.1');
    if (tls === undefined) return this.skip();
    const { port, counts } = await serving({ tls });
    const socket = connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false });
    const responses = peerOf(socket).closed;
    socket.write(many(500, 'Connection: close\r\n'));
    assert.equal((await responses).match(/HTTP\/1\.1 200/g)?.length, 500);
    assert.equal(counts.most, 8);
  });

  it('deliver their bodies, even ones that are read late', async () => {
    const handler: RequestListener = async (request, response) => {
      const body = await text(request);
      setTimeout(() => response.end(`${request.url} ${body.length}\n`), 1);
    };
    const post = (path: string, length: number, more = '') =>
      `POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Length: ${length}\r\n${more}\r\n${'x'.repeat(length)}`;
    const { port } = await serving({ handler, pipelineMax: 1 });
    const { socket, closed: responses } = speak(port, post('/1', 300_000) + post('/2', 0) + post('/3', 20_000));
    socket.write(post('/4', 500_000) + post('/5', 10, 'Connection: close\r\n'));
    assert.deepEqual((await responses).match(/^\/.*$/gm), ['/1 300000', '/2 0', '/3 20000', '/4 500000', '/5 10']);
  });

  /** Long enough to receive the heads before the late one on a busy machine. */
  const tooLate = { headerTimeoutMs: 1000 };
  for (const [what, text, status, options = {}] of [
    ['non-HTTP data', 'GARBAGE\r\n\r\n', 400],
    ['a request without Host', 'GET / HTTP/1.1\r\n\r\n', 400],
    ['a malformed header', 'GET / HTTP/1.1\r\nHost : a\r\n\r\n', 400],
    ['an incomplete head', 'GET / HTTP/1.1\r\nHost: a\r\n', 408, tooLate],
  ] as const)
    it(`receive their responses before the ${status} for ${what} that follows`, async () => {
      const held: ServerResponse[] = [];
      const rejected = createDeferred();
      const handler: RequestListener = ({ method }, response) => void (method === 'GET' && held.push(response));
      const { port } = await serving({ handler, logger: { warn: rejected.resolve }, ...options });
      const socket = connect(port, '127.0.0.1');
      const responses = peerOf(socket).closed;
      const sent = many(2) + text;
      socket.write(sent);
      await eventually(() => assert.equal(held.length, 2));
      await rejected.promise;
      // The parser reports an error again.
      const garbage = 'GARBAGE\r\n\r\n';
      socket.write(garbage);
      await eventually(() => assert.equal(held[0]?.req.socket.bytesRead, sent.length + garbage.length));
      for (const response of held) response.end('held');
      const statuses = (await responses).match(/(?<=HTTP\/1.1 )\d+/g);
      assert.deepEqual(statuses, ['200', '200', String(status)]);
    });

  for (const [what, headers, status] of [
    ['a malformed', 'Transfer-Encoding: chunked\r\n\r\nx', 400],
    ['an incomplete', 'Content-Length: 2\r\n', 408],
  ] as const)
    it(`receive their responses before the ${status} for ${what} body that follows`, async () => {
      const handler: RequestListener = ({ method }, response) => {
        if (method === 'GET') setImmediate(() => response.end());
      };
      const { port } = await serving({ handler, requestTimeoutMs: 50 });
      const responses = await sendRaw(port, `${many(2)}POST / HTTP/1.1\r\nHost: a\r\n${headers}\r\n`);
      assert.deepEqual(responses.match(/(?<=HTTP\/1.1 )\d+/g), ['200', '200', String(status)]);
    });

  it('are not executed if their head is completed only after the 408 for it was sent', async () => {
    const handler: RequestListener = () => {};
    const rejected = createDeferred();
    const { port, counts } = await serving({ handler, logger: { warn: rejected.resolve }, ...tooLate });
    const { socket, closed: responses } = speak(port, `${many(1)}GET /late HTTP/1.1\r\n`);
    await rejected.promise;
    socket.write('Host: a\r\n\r\n');
    assert.equal(await responses, '');
    assert.deepEqual(counts.seen, ['/0']);
  });

  it('may take as long as any other to send their bodies once it is their turn', async () => {
    const requestTimeoutMs = 300;
    const handler: RequestListener = async (request, response) => {
      if (request.method === 'GET') setTimeout(() => response.end('first'), requestTimeoutMs + 100);
      else response.end(String((await text(request)).length));
    };
    const { port } = await serving({ handler, pipelineMax: 1, requestTimeoutMs });
    // Node reads 64 KiB at a time, so that most of the body has not been read while the request waits.
    const body = 'x'.repeat(256 * 1024);
    const more = `Content-Length: ${body.length}\r\nConnection: close\r\n`;
    const responses = await sendRaw(port, get('/') + get('/', more).replace('GET', 'POST') + body);
    assert.match(responses, new RegExp(`\\r\\n\\r\\nfirstHTTP/1\\.1 200 OK\\r\\n[^]*\\r\\n${body.length}$`));
  });

  for (const [what, handler, more] of [
    ['that was sent before the end of the body', (_request, response) => response.end('x'), 'Content-Length: 5\r\n'],
    ['that the handler chose', (_request, response) => response.setHeader('Connection', 'close').end('x'), ''],
  ] as const satisfies readonly (readonly [string, RequestListener, string])[])
    it(`are not executed after a response with Connection: close ${what}`, async () => {
      const { port, counts } = await serving({ handler });
      const body = more === '' ? '' : 'hello';
      assert.match(await sendRaw(port, get('/0', more) + body + get('/1')), /\r\nConnection: close\r\n.*x/s);
      assert.deepEqual(counts.seen, ['/0']);
    });

  for (const [what, headers] of [
    ['Transfer-Encoding', ''],
    ['Transfer-Encoding and keep-alive', 'Connection: keep-alive\r\n'],
  ] as const)
    it(`are not executed after a request of HTTP/1.0 with ${what}, whose end is uncertain`, async () => {
      const handler: RequestListener = async (request, response) =>
        response.setHeader('Content-Length', 1).end(await text(request));
      const { port, counts } = await serving({ handler });
      const first = `POST /0 HTTP/1.0\r\n${headers}Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n`;
      const second = 'GET /1 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n';
      assert.match(await sendRaw(port, first + second), /^HTTP\/1\.1 200 OK\r\n.*\r\nConnection: close\r\n\r\na$/s);
      assert.deepEqual(counts.seen, ['/0']);
    });

  it('are not executed after a request with a length and a coding', async () => {
    for (const version of ['1.0', '1.1'])
      for (const length of [0, 5]) {
        const { port, counts } = await serving({});
        const both = `Host: a\r\nContent-Length: ${length}\r\nTransfer-Encoding: chunked\r\nConnection: keep-alive\r\n`;
        const response = await sendRaw(port, `POST /0 HTTP/${version}\r\n${both}\r\n0\r\n\r\n${get('/1')}`);
        assert.match(response, /^HTTP\/1\.1 400 .*\r\nConnection: close\r\n(?!.*HTTP)/s);
        assert.deepEqual(counts.seen, []);
      }
  });

  it('count as waiting behind an unfinished response that says Connection: close', async () => {
    const handler: RequestListener = (_request, response) => response.setHeader('Connection', 'close').write('x');
    const { port, counts } = await serving({ handler, waitingMax: 100 });
    await sendRaw(port, many(102));
    assert.deepEqual(counts.seen, ['/0']);
  });

  it('are not executed if they wait and an earlier response says Connection: close', async () => {
    const held: ServerResponse[] = [];
    const handler: RequestListener = (_request, response) => {
      if (held.push(response) !== 3) return;
      setImmediate(() => {
        const [first, second, third] = held;
        third?.setHeader('Connection', 'close').end('last');
        first?.once('close', () => setImmediate(() => second?.end())).end();
      });
    };
    const { port, counts } = await serving({ handler, pipelineMax: 3 });
    assert.match(await sendRaw(port, many(5)), /last$/);
    assert.deepEqual(counts.seen, ['/0', '/1', '/2']);
  });

  for (const [what, request] of [
    ['may change something', get('/1').replace('GET', 'DELETE')],
    ['have a body', `${get('/1', 'Content-Length: 1\r\n')}x`],
  ] as const)
    it(`run alone if they ${what}`, async () => {
      const events: string[] = [];
      const handler: RequestListener = ({ url }, response) => {
        events.push(`${url} starts`);
        setImmediate(() => setImmediate(() => response.end(() => events.push(`${url} ends`))));
      };
      const { port } = await serving({ handler });
      await sendRaw(port, get('/0') + request + get('/2', 'Connection: close\r\n'));
      assert.deepEqual(
        events,
        ['/0', '/1', '/2'].flatMap((url) => [`${url} starts`, `${url} ends`]),
      );
    });

  it('are not executed if their connection has been closed', async () => {
    const { port, counts } = await serving({ handler: ({ socket }) => void socket.destroy() });
    assert.equal(await sendRaw(port, many(3)), '');
    assert.deepEqual(counts.seen, ['/0']);
  });

  it('are closed with their connection when CONNECT follows', async () => {
    const { port, counts } = await serving({ handler: () => {} });
    assert.equal(await sendRaw(port, `${many(2)}CONNECT b:443 HTTP/1.1\r\nHost: b:443\r\n\r\n`), '');
    assert.deepEqual(counts.seen, ['/0', '/1']);
  });

  it('lose no data that a client sends early for the protocol after an upgrade', async () => {
    const upgrades = createUpgrades(() => true);
    const early = 'y'.repeat(30_000);
    const { port } = await startHttp(servers, {
      upgrades,
      handler(request, response) {
        const upgrade = upgradeOf(request);
        if (upgrade === undefined) return void response.end();
        const socket = upgrade.accept('echo');
        let received = '';
        socket.on('data', (chunk: Buffer) => {
          received += chunk.toString();
          if (received.length === early.length) socket.end(received);
        });
      },
    });
    const response = await sendRaw(port, get('/', 'Connection: upgrade\r\nUpgrade: echo\r\n') + early);
    assert.ok(response.endsWith(`\r\n\r\n${early}`));
  });
});
