/** What becomes of an answer's parts on their way: the status line, interim answers, trailers, cookies, and a body that takes its time. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { type EdgeOptions, mappingOf, remote, startEdge } from '../support/edge.ts';
import { testServers } from '../support/serve.ts';
import { startUpstream } from '../support/upstream.ts';
import { createSignal } from '../support/waiting.ts';
import { rawRequest, sendRaw } from '../support/wire/raw-client.ts';

describe('an answer', () => {
  const servers = testServers();

  /** Says these bytes to every request. */
  async function startSaying(said: string, more: EdgeOptions = {}) {
    const sockets: Socket[] = [];
    const upstream = await servers.tcp((socket) => {
      sockets.push(socket);
      socket.on('data', () => socket.write(said, 'latin1'));
    });
    const edge = await startEdge(servers, { targets: { hotel: remote(upstream) }, ...more });
    return { edge, sockets };
  }

  async function get(port: number): Promise<IncomingMessage> {
    const [answer] = await once(request({ port, path: '/v1/hotels', agent: false }).end(), 'response');
    return answer;
  }

  function checkStatusLine(said: string, expected: string) {
    it(`with the status line "${said}" has "${expected}" for the client`, async () => {
      const { edge } = await startSaying(`HTTP/1.1 ${said}\r\nContent-Length: 0\r\n\r\n`);
      const answer = await sendRaw(edge.port, rawRequest('GET /v1/hotels'));
      assert.equal(answer.slice('HTTP/1.1 '.length, answer.indexOf('\r\n')), expected);
    });
  }

  checkStatusLine('200 Very Well', '200 Very Well');
  checkStatusLine('200', '200 OK');
  checkStatusLine('999 Odd', '999 Odd');
  checkStatusLine('404 Zo\u00eb', '404 Not Found');

  it('says what it has come through', async () => {
    const { edge } = await startSaying('HTTP/1.1 200 OK\r\nVia: 1.0 inner\r\nContent-Length: 0\r\n\r\n');
    assert.equal((await get(edge.port)).headers.via, '1.0 inner, 1.1 frontdesk');
  });

  it('keeps lines of the same name apart, and their spelling', async () => {
    const { edge } = await startSaying(
      'HTTP/1.1 200 OK\r\nWWW-Authenticate: Basic\r\nWWW-Authenticate: Bearer\r\nContent-Length: 0\r\n\r\n',
    );
    const answer = await sendRaw(edge.port, rawRequest('GET /v1/hotels'));
    assert.match(answer, /\r\nWWW-Authenticate: Basic\r\nWWW-Authenticate: Bearer\r\n/);
  });

  it('has the paths of its cookies turned back', async () => {
    const { edge } = await startSaying('HTTP/1.1 200 OK\r\nSet-Cookie: a=1; Path=/x\r\nContent-Length: 0\r\n\r\n');
    assert.deepEqual((await get(edge.port)).headers['set-cookie'], ['a=1; Path=/v1/hotels/x']);
  });

  it('may be preceded by hints, of which a client of HTTP/1.0 hears nothing', async () => {
    const interim = [
      'HTTP/1.1 102 Processing\r\n\r\n',
      'HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload, </b.js>; rel=preload\r\nX-A: secret\r\n\r\n',
      'HTTP/1.1 103 Early Hints\r\nLink: nonsense\r\n\r\n',
    ];
    const { edge } = await startSaying(`${interim.join('')}HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok`);
    const asked = request({ port: edge.port, path: '/v1/hotels', agent: false }).end();
    const hints: unknown[] = [];
    asked.on('information', ({ statusCode, headers }) => hints.push([statusCode, headers]));
    const [answer] = await once(asked, 'response');
    assert.equal(await text(answer), 'ok');
    assert.deepEqual(hints, [[103, { link: '</a.css>; rel=preload, </b.js>; rel=preload' }]]);
    const old = await sendRaw(edge.port, 'GET /v1/hotels HTTP/1.0\r\nHost: a\r\n\r\n');
    assert.match(old, /^HTTP\/1\.1 200 OK\r\n/);
  });

  it('has its trailers passed on, but for those that speak of more than the body', async () => {
    const trailers = 'X-Sum: 7\r\nContent-Type: odd\r\nSet-Cookie: a=1\r\nConnection: close\r\n';
    const head = 'HTTP/1.1 200 OK\r\nTrailer: X-Sum\r\nTransfer-Encoding: chunked\r\n\r\n';
    const { edge } = await startSaying(`${head}2\r\nok\r\n0\r\n${trailers}\r\n`);
    const answer = await get(edge.port);
    assert.equal(await text(answer), 'ok');
    assert.equal(answer.headers.trailer, 'X-Sum');
    assert.deepEqual(answer.trailers, { 'x-sum': '7' });
    const old = await sendRaw(edge.port, 'GET /v1/hotels HTTP/1.0\r\nHost: a\r\n\r\n');
    assert.match(old, /\r\n\r\nok$/);
  });

  it('with a body that is silent at first is known by its headers at once', async () => {
    const { edge, sockets } = await startSaying(
      'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n',
    );
    const answer = await get(edge.port);
    assert.equal(answer.headers['content-type'], 'text/event-stream');
    for (const event of ['data: 1\n\n', 'data: 2\n\n']) {
      sockets[0]?.write(`${event.length.toString(16)}\r\n${event}\r\n`);
      const [chunk] = await once(answer, 'data');
      assert.equal(String(chunk), event);
    }
    answer.destroy();
  });

  it('whose body rests for too long is broken off, unless it is a stream of events', async () => {
    const endless = (type: string) => `HTTP/1.1 200 OK\r\nContent-Type: ${type}\r\nContent-Length: 10\r\n\r\nhello`;
    const plain = await startSaying(endless('text/plain'), { idleTimeoutMs: 60 });
    await assert.rejects(text(await get(plain.edge.port)), { code: 'ECONNRESET' });
    const strict = await startSaying(endless('text/event-stream'), { mappings: [mappingOf({ idleTimeoutMs: 60 })] });
    await assert.rejects(text(await get(strict.edge.port)), { code: 'ECONNRESET' });
    const events = await startSaying(endless('text/event-stream'), { idleTimeoutMs: 60 });
    const [silent, other] = [await get(events.edge.port), await get(plain.edge.port)];
    await assert.rejects(text(other));
    events.sockets[0]?.write('world');
    assert.equal(await text(silent), 'helloworld');
  });

  it('still belongs to a host app when the gateway is through with it', async () => {
    for (const body of ['Content-Length: 5\r\n\r\nhello', 'Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n']) {
      const { edge, sockets } = await startSaying(`HTTP/1.1 200 OK\r\n${body}`, {
        host: [
          async (ctx, next) => {
            await next();
            await new Promise((resolve) => setImmediate(resolve));
            ctx.set('X-Host', String(ctx.status));
          },
        ],
      });
      const answer = await get(edge.port);
      sockets[0]?.write('0\r\n\r\n');
      assert.equal(await text(answer), 'hello');
      assert.equal(answer.headers['x-host'], '200');
    }
  });

  it('that a host app replaces is not read on', async () => {
    const gone = createSignal();
    const upstream = await servers.http((_req, res) => {
      res.once('close', gone.give);
      res.write('first');
    });
    const host: EdgeOptions['host'] = [
      async (ctx, next) => {
        await next();
        ctx.body = 'other';
        await gone.given;
      },
    ];
    const edge = await startEdge(servers, { host, targets: { hotel: remote(upstream) } });
    assert.equal(await text(await get(edge.port)), 'other');
  });

  /** 32 MiB, and how many of them were taken. */
  async function startAbundance(host: EdgeOptions['host'] = []) {
    const bytes = 32 * 1024 * 1024;
    let sent = 0;
    function* chunks() {
      for (const chunk = Buffer.alloc(256 * 1024); sent < bytes; sent += chunk.length) yield chunk;
    }
    const upstream = await servers.http((_req, res) => void Readable.from(chunks()).pipe(res));
    const edge = await startEdge(servers, { host, targets: { hotel: remote(upstream) } });
    async function untilStill(): Promise<void> {
      for (let before = -1; before !== sent || sent === 0; await new Promise((resolve) => setTimeout(resolve, 50)))
        before = sent;
      assert.ok(sent < bytes / 2, `${sent} bytes were read for a client that takes none`);
    }
    return { edge, bytes, untilStill };
  }

  async function lengthOf(answer: IncomingMessage): Promise<number> {
    let received = 0;
    for await (const chunk of answer) received += (chunk as Buffer).length;
    return received;
  }

  it('is read no faster than the client takes it', async () => {
    const { edge, bytes, untilStill } = await startAbundance();
    const answer = await get(edge.port);
    answer.pause();
    await untilStill();
    assert.equal(await lengthOf(answer), bytes);
  });

  it('is not read while a host app holds it back', async () => {
    const go = createSignal();
    const { edge, bytes, untilStill } = await startAbundance([(_ctx, next) => next().then(() => go.given)]);
    const asked = get(edge.port);
    await untilStill();
    go.give();
    assert.equal(await lengthOf(await asked), bytes);
  });
});

describe('a request on its way', () => {
  const servers = testServers();

  it('says what it has come through, and goes in no circle', async () => {
    const upstream = await startUpstream(servers);
    const edge = await startEdge(servers, { targets: { hotel: remote(upstream) } });
    const via = (value: string) => sendRaw(edge.port, rawRequest('GET /v1/hotels', [`Via: ${value}`]));
    await sendRaw(edge.port, rawRequest('GET /v1/hotels'));
    await via('1.0 fred, 1.1 frontdesk');
    assert.deepEqual(
      upstream.reached.map(({ headers }) => headers.via),
      ['1.1 frontdesk', '1.0 fred, 1.1 frontdesk, 1.1 frontdesk'],
    );
    assert.match(await via(Array(5).fill('1.1 frontdesk').join(', ')), /^HTTP\/1\.1 508 /);
    assert.equal(upstream.reached.length, 2);
  });

  it('that leads back to the gateway ends', async () => {
    let edge: { readonly origin: string; readonly port: number } | undefined;
    const origins = () => [edge?.origin ?? ''];
    const mappings = [mappingOf({ rewrite: '' })];
    edge = await startEdge(servers, { mappings, targets: { hotel: { kind: 'remote', origins, path: '' } } });
    assert.match(await sendRaw(edge.port, rawRequest('GET /v1/hotels')), /^HTTP\/1\.1 508 /);
  });

  it('has the host that the mapping says', async () => {
    const upstream = await startUpstream(servers);
    const mappings = [mappingOf({ hostRewrite: 'inner.example' })];
    const edge = await startEdge(servers, { mappings, targets: { hotel: remote(upstream) } });
    await sendRaw(edge.port, rawRequest('GET /v1/hotels'));
    assert.equal(upstream.only().headers.host, 'inner.example');
  });

  it('may take its time with the body: the clock of the service starts when it is whole', async () => {
    const upstream = await startUpstream(servers);
    const edge = await startEdge(servers, {
      mappings: [mappingOf({ timeoutMs: 50 })],
      targets: { hotel: remote(upstream) },
    });
    const socket = connect(edge.port, '127.0.0.1');
    socket.write(rawRequest('POST /v1/hotels', ['Content-Length: 5'], 'hel'));
    await new Promise((resolve) => setTimeout(resolve, 120));
    socket.write('lo');
    assert.match(await text(socket), /^HTTP\/1\.1 200 /);
    assert.equal(upstream.only().body, 'hello');
  });

  it('gives a service that is slow with such a body no more time than with another', async () => {
    const upstream = await servers.http((req) => void req.resume());
    const edge = await startEdge(servers, {
      mappings: [mappingOf({ timeoutMs: 50 })],
      targets: { hotel: remote(upstream) },
    });
    const socket = connect(edge.port, '127.0.0.1');
    socket.write(rawRequest('POST /v1/hotels', ['Content-Length: 5'], 'hel'));
    await new Promise((resolve) => setTimeout(resolve, 120));
    socket.write('lo');
    assert.match(await text(socket), /^HTTP\/1\.1 504 /);
  });

  it('whose body rests for too long is the fault of the client', async () => {
    const aborted = createSignal();
    const upstream = await servers.http((req) => void req.on('error', aborted.give).resume());
    const edge = await startEdge(servers, { idleTimeoutMs: 50, targets: { hotel: remote(upstream) } });
    const answer = await sendRaw(edge.port, rawRequest('POST /v1/hotels', ['Content-Length: 5'], 'hel'));
    assert.match(answer, /^HTTP\/1\.1 408 [\s\S]*connection: close/i);
    await aborted.given;
  });

  it('whose body the service does not read is the fault of the service', async () => {
    const upstream = await servers.tcp((socket) => void socket.pause());
    const bodyBytesMax = 64 * 1024 * 1024;
    const edge = await startEdge(servers, {
      bodyBytesMax,
      mappings: [mappingOf({ timeoutMs: 100 })],
      targets: { hotel: remote(upstream) },
    });
    const body = 'x'.repeat(bodyBytesMax / 2);
    const answer = await sendRaw(edge.port, rawRequest('POST /v1/hotels', [`Content-Length: ${body.length}`], body));
    assert.match(answer, /^HTTP\/1\.1 504 /);
  });
});
