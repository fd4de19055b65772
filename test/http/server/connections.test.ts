import assert from 'node:assert/strict';
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { connect as connectTls } from 'node:tls';
import { createUpgrades, type HttpServerOptions, serveHttp, upgradeOf } from '#http';
import { temporaryFiles } from '../../support/temporary-files.ts';
import { createSignal, eventually } from '../../support/waiting.ts';
import { makeCertificate } from '../../support/wire/certificate.ts';
import { httpLimits } from '../../support/wire/http-limits.ts';
import { everything } from '../raw-exchange.ts';

const page = 'x'.repeat(24 * 1024);
const get = (path: string, more = '') => `GET ${path} HTTP/1.1\r\nHost: a\r\n${more}\r\n`;
const many = (length: number, last = '') =>
  Array.from({ length }, (_, index) => get(`/${index}`, index === length - 1 ? last : '')).join('');

describe('pipelined requests', () => {
  const writeFiles = temporaryFiles();

  /** Counts the requests that are open, over all connections. */
  async function serving(
    { handler, ...options }: Partial<HttpServerOptions>,
    use: (port: number, counts: { open: number; most: number; seen: string[] }) => Promise<void>,
  ): Promise<void> {
    const counts = { open: 0, most: 0, seen: [] as string[] };
    const counting = (request: IncomingMessage, response: ServerResponse) => {
      counts.seen.push(request.url ?? '');
      counts.open += 1;
      counts.most = Math.max(counts.most, counts.open);
      response.prependOnceListener('close', () => {
        counts.open -= 1;
      });
      (handler ?? ((_request, answer) => void setImmediate(() => answer.end(page))))(request, response);
    };
    const server = await serveHttp({ ...httpLimits, ...options, handler: counting });
    try {
      await use(server.port, counts);
    } finally {
      await server.close(0);
    }
  }

  it('are served a few at a time on each connection, however many come at once', async () => {
    const held: ServerResponse[] = [];
    await serving({ handler: (_request, response) => void held.push(response) }, async (port, counts) => {
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
  });

  it('end their connection when too many wait on all of them together, and give their places to later ones', async () => {
    await serving(
      { handler: (request, response) => void (request.url === '/' && response.end('ok')) },
      async (port, counts) => {
        const sockets = Array.from({ length: 11 }, () => connect(port, '127.0.0.1').on('error', () => {}));
        for (const socket of sockets) socket.write(many(1000));
        await eventually(() => assert.ok(sockets.some(({ destroyed }) => destroyed)));
        const last = connect(port, '127.0.0.1');
        const answer = everything(last);
        last.write(get('/', 'Connection: close\r\n'));
        assert.match(await answer, /\r\n\r\nok$/);
        for (const socket of sockets) socket.destroy();
        await eventually(() => assert.equal(counts.open, 0));
        const late = connect(port, '127.0.0.1');
        const answers = everything(late);
        late.write(get('/').repeat(19) + get('/', 'Connection: close\r\n'));
        assert.equal((await answers).match(/\r\n\r\nok/g)?.length, 20);
      },
    );
  });

  it('wait while the client does not take the answers to those before them', async () => {
    const handler: RequestListener = (_request, response) => void response.end(page.repeat(100));
    await serving({ handler }, async (port, counts) => {
      const socket = connect(port, '127.0.0.1').pause();
      socket.write(many(1000));
      // The system takes the first answers from us.
      await eventually(() => assert.ok(counts.seen.length > 8 || counts.open === 8));
      assert.equal(counts.most, 8);
      socket.destroy();
      await eventually(() => assert.equal(counts.open, 0));
      assert.ok(counts.seen.length < 100);
    });
  });

  it('let the requests of other connections come between', async () => {
    let one: Socket | undefined;
    // Sent when the crowd has begun, so that only a turn of the event loop in between lets it in.
    const handler: RequestListener = ({ url }, response) => {
      if (url === '/0') one?.write(get('/second'));
      response.end('ok');
    };
    await serving({ handler }, async (port, counts) => {
      one = connect(port, '127.0.0.1').resume();
      one.write(get('/first'));
      await eventually(() => assert.equal(counts.seen.length, 1));
      const crowd = connect(port, '127.0.0.1').resume();
      crowd.write(many(900));
      await eventually(() => assert.equal(counts.seen.length, 902));
      assert.ok(counts.seen.indexOf('/second') < 800);
      for (const socket of [crowd, one]) socket.destroy();
    });
  });

  it('are all answered, in their order, to a client that reads', async () => {
    const handler: RequestListener = ({ url }, response) => void setImmediate(() => response.end(`${url} ${page}`));
    await serving({ handler, pipelineMax: 3 }, async (port, counts) => {
      const socket = connect(port, '127.0.0.1');
      const answers = everything(socket);
      socket.write(many(500, 'Connection: close\r\n'));
      const paths = (await answers).match(/\/\d+ (?=x)/g);
      assert.deepEqual(
        paths,
        counts.seen.map((path) => `${path} `),
      );
      assert.equal(paths?.length, 500);
      assert.equal(counts.most, 3);
    });
  });

  it('give their places back as they are answered: more of them than may wait come one connection after the other', async () => {
    const handler: RequestListener = (_request, response) => void response.end('ok');
    await serving({ handler, waitingMax: 100 }, async (port) => {
      for (let round = 0; round < 11; round += 1) {
        const socket = connect(port, '127.0.0.1');
        const answers = everything(socket);
        socket.write(many(100, 'Connection: close\r\n'));
        assert.equal((await answers).match(/\r\n\r\nok/g)?.length, 100);
      }
    });
  });

  it('are all answered over TLS as well', async function () {
    const tls = await makeCertificate(await writeFiles(), 'IP:127.0.0.1');
    if (tls === undefined) return this.skip();
    await serving({ tls }, async (port, counts) => {
      const socket = connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false });
      const answers = everything(socket);
      socket.write(many(500, 'Connection: close\r\n'));
      assert.equal((await answers).match(/HTTP\/1\.1 200/g)?.length, 500);
      assert.equal(counts.most, 8);
    });
  });

  it('bring their bodies, also one that is read only later', async () => {
    const handler: RequestListener = async (request, response) => {
      const body = await text(request);
      setTimeout(() => response.end(`${request.url} ${body.length}\n`), 1);
    };
    const post = (path: string, length: number, more = '') =>
      `POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Length: ${length}\r\n${more}\r\n${'x'.repeat(length)}`;
    await serving({ handler, pipelineMax: 1 }, async (port) => {
      const socket: Socket = connect(port, '127.0.0.1');
      const answers = everything(socket);
      socket.write(post('/1', 300_000) + post('/2', 0) + post('/3', 20_000));
      socket.write(post('/4', 500_000) + post('/5', 10, 'Connection: close\r\n'));
      assert.deepEqual((await answers).match(/^\/.*$/gm), ['/1 300000', '/2 0', '/3 20000', '/4 500000', '/5 10']);
    });
  });

  /** Time for the heads before the late one, also on a busy machine. */
  const tooLate = { headerTimeoutMs: 300 };
  for (const [what, text, status, options = {}] of [
    ['what is not HTTP', 'GARBAGE\r\n\r\n', 400],
    ['a request without Host', 'GET / HTTP/1.1\r\n\r\n', 400],
    ['a malformed header', 'GET / HTTP/1.1\r\nHost : a\r\n\r\n', 400],
    ['a malformed body', 'POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n', 400],
    ['a head that does not end', 'GET / HTTP/1.1\r\nHost: a\r\n', 408, tooLate],
    [
      'a body that does not end',
      'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n',
      408,
      { requestTimeoutMs: 50 },
    ],
  ] as const)
    it(`have their answers before the ${status} for ${what} behind them`, async () => {
      const held: ServerResponse[] = [];
      const refused = createSignal();
      const handler: RequestListener = ({ method }, response) => void (method === 'GET' && held.push(response));
      await serving({ handler, logger: { warn: refused.give }, ...options }, async (port) => {
        const socket = connect(port, '127.0.0.1');
        const answers = everything(socket);
        const sent = many(2) + text;
        socket.write(sent);
        await eventually(() => assert.equal(held.length, 2));
        await refused.given;
        // The parser reports it again.
        const garbage = 'GARBAGE\r\n\r\n';
        socket.write(garbage);
        await eventually(() => assert.equal(held[0]?.req.socket.bytesRead, sent.length + garbage.length));
        for (const response of held) response.end('held');
        const statuses = (await answers).match(/(?<=HTTP\/1.1 )\d+/g);
        assert.deepEqual(statuses, ['200', '200', String(status)]);
      });
    });

  it('behind which the rest of a late head comes after its 408 was due: none is carried out', async () => {
    const handler: RequestListener = () => {};
    const refused = createSignal();
    await serving({ handler, logger: { warn: refused.give }, ...tooLate }, async (port, { seen }) => {
      const socket = connect(port, '127.0.0.1');
      const answers = everything(socket);
      socket.write(`${many(1)}GET /late HTTP/1.1\r\n`);
      await refused.given;
      socket.write('Host: a\r\n\r\n');
      assert.equal(await answers, '');
      assert.deepEqual(seen, ['/0']);
    });
  });

  it('end with their connection when a client asks for a tunnel', async () => {
    await serving({ handler: () => {} }, async (port, { seen }) => {
      const socket = connect(port, '127.0.0.1');
      const answers = everything(socket);
      socket.write(`${many(2)}CONNECT b:443 HTTP/1.1\r\nHost: b:443\r\n\r\n`);
      assert.equal(await answers, '');
      assert.deepEqual(seen, ['/0', '/1']);
    });
  });

  it('lose nothing that a client sends early for the protocol after an upgrade', async () => {
    const upgrades = createUpgrades(() => true);
    const early = 'y'.repeat(30_000);
    const server = await serveHttp({
      ...httpLimits,
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
    const socket = connect(server.port, '127.0.0.1');
    const answer = everything(socket);
    socket.write(`${get('/', 'Connection: upgrade\r\nUpgrade: echo\r\n')}${early}`);
    assert.ok((await answer).endsWith(`\r\n\r\n${early}`));
    await server.close(0);
  });
});
