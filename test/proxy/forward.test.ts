/** What a client gets from a service across HTTP, and what the service sees of the client. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request, type ServerResponse } from 'node:http';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import supertest from 'supertest';
import type { Mapping } from '#config';
import { requestContext } from '#http';
import { type EdgeOptions, mappingOf, remote, startEdge } from '../support/edge.ts';
import { testServers } from '../support/serve.ts';
import { startUpstream } from '../support/upstream.ts';
import { createSignal } from '../support/waiting.ts';
import { rawRequest, sendRaw } from '../support/wire/raw-client.ts';

describe('a service across HTTP', () => {
  const servers = testServers();

  async function setUp(answer?: (res: ServerResponse) => void, mapping: Partial<Mapping> = {}, more: EdgeOptions = {}) {
    const upstream = await startUpstream(servers, answer);
    const targets = { hotel: remote(upstream), based: remote(upstream, '/base') };
    const edge = await startEdge(servers, { mappings: [mappingOf(mapping)], targets, ...more });
    return { upstream, edge, client: supertest(edge.origin) };
  }

  function checkPath(mapping: Partial<Mapping>, asked: string, expected: string) {
    it(`sees ${expected} when the client asks for ${asked} (${JSON.stringify(mapping)})`, async () => {
      const { upstream, edge } = await setUp(undefined, mapping);
      await sendRaw(edge.port, rawRequest(`GET ${asked}`));
      assert.equal(upstream.only().url, expected);
    });
  }

  checkPath({}, '/v1/hotels', '/');
  checkPath({}, '/v1/hotels/bookings/1?a=1&b=%20&a=2', '/bookings/1?a=1&b=%20&a=2');
  checkPath({}, '/v1/hotels?', '/');
  checkPath({}, '/v1/hotels//evil.example/x', '/evil.example/x');
  checkPath({}, '/v1/hotels/a%2Fb?u=//evil.example', '/a%2Fb?u=//evil.example');
  checkPath({ rewrite: '' }, '/v1/hotels/x?y', '/v1/hotels/x?y');
  checkPath({ rewrite: '' }, '//v1/hotels/x', '/v1/hotels/x');
  checkPath({ rewrite: '/api' }, '/v1/hotels/x', '/api/x');
  checkPath({ service: 'based' }, '/v1/hotels/x', '/base/x');
  checkPath({ service: 'based', rewrite: '' }, '/v1/hotels', '/base/v1/hotels');
  checkPath({ prefix: '/', rewrite: '' }, 'http://evil.example/x?y', '/x?y');

  it('gets every method but TRACE, which would echo credentials', async () => {
    const { upstream, edge } = await setUp();
    for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'HEAD', 'PROPFIND'])
      assert.match(await sendRaw(edge.port, rawRequest(`${method} /v1/hotels`)), /^HTTP\/1\.1 200 /);
    assert.match(await sendRaw(edge.port, rawRequest('TRACE /v1/hotels')), /^HTTP\/1\.1 501 /);
    assert.ok(!upstream.reached.some(({ method }) => method === 'TRACE'));
  });

  function checkAnswer(what: string, answer: (res: ServerResponse) => void, expected: string, method = 'GET') {
    it(`has its answer passed on: ${what}`, async () => {
      const { edge } = await setUp(answer);
      const received = await sendRaw(edge.port, rawRequest(`${method} /v1/hotels`));
      const own = /^(?:x-request-id|x-content-type-options|date|connection|via):/i;
      const lines = received.split('\r\n').filter((line) => !own.test(line));
      assert.equal(lines.join('\n').toLowerCase(), expected);
    });
  }

  checkAnswer('text', (res) => res.end('ok'), 'http/1.1 200 ok\ncontent-length: 2\n\nok');
  checkAnswer('nothing', (res) => res.end(), 'http/1.1 200 ok\ncontent-length: 0\n\n');
  checkAnswer(
    'a body without a length, which it gets when it is there as a whole',
    (res) => {
      res.write('o');
      res.end('k');
    },
    'http/1.1 200 ok\ncontent-length: 2\n\nok',
  );
  checkAnswer(
    'a status that we do not know',
    (res) => res.writeHead(299).end(),
    'http/1.1 299 unknown\ncontent-length: 0\n\n',
  );
  checkAnswer(
    'no content',
    (res) => res.writeHead(204, { ETag: '"1"' }).end(),
    'http/1.1 204 no content\netag: "1"\n\n',
  );
  checkAnswer(
    'not modified',
    (res) => res.writeHead(304, { ETag: '"1"' }).end(),
    'http/1.1 304 not modified\netag: "1"\n\n',
  );
  checkAnswer(
    'an error of its own',
    (res) => res.writeHead(404, { 'Content-Type': 'text/odd', 'Content-Length': '4' }).end('gone'),
    'http/1.1 404 not found\ncontent-type: text/odd\ncontent-length: 4\n\ngone',
  );
  checkAnswer(
    'a failure of its own',
    (res) => res.writeHead(500, { 'Content-Length': '2' }).end('oh'),
    'http/1.1 500 internal server error\ncontent-length: 2\n\noh',
  );
  checkAnswer(
    'the headers alone for HEAD',
    (res) => res.writeHead(200, { 'Content-Length': '5', 'Content-Type': 'a/b' }).end(),
    'http/1.1 200 ok\ncontent-length: 5\ncontent-type: a/b\n\n',
    'HEAD',
  );
  checkAnswer('an error for HEAD', (res) => res.writeHead(404).end(), 'http/1.1 404 not found\n\n', 'HEAD');

  it('may redirect within itself: the client gets the public path', async () => {
    const { client } = await setUp((res) => res.writeHead(308, { Location: '/bookings/?limit=1' }).end());
    await client.get('/v1/hotels/bookings?limit=1').expect(308).expect('Location', '/v1/hotels/bookings/?limit=1');
  });

  it('may redirect by its own address, which stays hidden', async () => {
    const { client } = await setUp((res) =>
      res.writeHead(302, { Location: `http://${res.req.headers.host}/base/new` }).end(),
    );
    await client.get('/v1/hotels/old').expect('Location', '/v1/hotels/base/new');
    const { client: based } = await setUp(
      (res) => res.writeHead(302, { Location: `http://${res.req.headers.host}/base/new` }).end(),
      { service: 'based' },
    );
    await based.get('/v1/hotels/old').expect('Location', '/v1/hotels/new');
  });

  it('is told the public path where the gateway is mounted, and its redirects lead there', async () => {
    const { client, upstream } = await setUp(
      (res) => res.writeHead(302, { Location: '/x' }).end(),
      {},
      {
        host: [
          async (ctx, next) => {
            ctx.path = ctx.path.slice('/travel'.length);
            await next();
          },
        ],
      },
    );
    await client.get('/travel/v1/hotels').expect('Location', '/travel/v1/hotels/x');
    assert.equal(upstream.only().headers['x-forwarded-prefix'], '/travel/v1/hotels');
  });

  it('streams its answer: what it has said arrives before it has said all', async () => {
    let open: ServerResponse | undefined;
    const { edge } = await setUp((res) => {
      open = res;
      res.write('first');
    });
    const [answer] = await once(request(`${edge.origin}/v1/hotels`).end(), 'response');
    const [chunk] = await once(answer, 'data');
    assert.equal(String(chunk), 'first');
    assert.equal(answer.headers['transfer-encoding'], 'chunked');
    open?.end();
    await once(answer, 'end');
  });

  it('is streamed to: what the client has said arrives before it has said all', async () => {
    const heard: Buffer[] = [];
    const upstream = await servers.http((req, res) => {
      req.once('data', () => res.write('heard '));
      req.on('data', (chunk) => heard.push(chunk));
      req.on('end', () => res.end('done'));
    });
    const edge = await startEdge(servers, { targets: { hotel: remote(upstream) } });
    const sending = request(`${edge.origin}/v1/hotels`, { method: 'POST' });
    sending.write('first');
    const [answer] = await once(sending, 'response');
    assert.equal(String(Buffer.concat(heard)), 'first');
    sending.end('second');
    assert.equal(await text(answer), 'heard done');
    assert.equal(String(Buffer.concat(heard)), 'firstsecond');
  });

  it('may answer before it has heard all: the client gets the answer, on a connection that then ends', async () => {
    const upstream = await servers.http((_req, res) => {
      res.writeHead(409, { Connection: 'close' }).end('enough');
    });
    const edge = await startEdge(servers, { targets: { hotel: remote(upstream) } });
    const socket = connect(edge.port, '127.0.0.1').setEncoding('latin1');
    socket.write('POST /v1/hotels HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhello');
    const answer = await text(socket);
    assert.match(answer, /^HTTP\/1\.1 409 Conflict\r\n/);
    assert.match(answer, /\r\nConnection: close\r\n/i);
    assert.match(answer, /enough/);
  });

  it('leaves the connection of a client fit for the next request', async () => {
    const { edge, upstream } = await setUp();
    const asked = 'POST /v1/hotels HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello';
    const answers = await sendRaw(edge.port, asked, rawRequest('GET /v1/hotels/next'));
    assert.equal(answers.match(/HTTP\/1\.1 200 OK/g)?.length, 2);
    assert.deepEqual(
      upstream.reached.map(({ url }) => url),
      ['/', '/next'],
    );
  });

  it('has its time measured, also when it fails', async () => {
    const times: (number | undefined)[] = [];
    const upstream = await startUpstream(servers);
    const edge = await startEdge(servers, {
      mappings: [mappingOf(), mappingOf({ name: 'car', prefix: '/v1/cars', service: 'car' })],
      targets: { hotel: remote(upstream), car: remote(await servers.refusing()) },
      host: [
        async (ctx, next) => {
          await next();
          times.push(requestContext(ctx).upstreamMs);
        },
      ],
    });
    await supertest(edge.origin).get('/v1/hotels').expect(200);
    await supertest(edge.origin).get('/v1/cars').expect(503);
    assert.deepEqual(
      times.map((time) => typeof time),
      ['number', 'number'],
    );
  });
});

describe('a client that leaves', () => {
  const servers = testServers();

  it('before the answer ends the exchange with the service, and nothing is called a fault', async () => {
    const gone = createSignal();
    const reached = createSignal();
    const finished = createSignal();
    const upstream = await servers.http((req) => {
      req.socket.once('close', () => gone.give());
      reached.give();
    });
    const edge = await startEdge(servers, {
      targets: { hotel: remote(upstream) },
      host: [(_ctx, next) => next().finally(() => finished.give())],
    });
    const leaving = connect(edge.port, '127.0.0.1');
    leaving.write(rawRequest('GET /v1/hotels'));
    await reached.given;
    leaving.destroy();
    await Promise.all([gone.given, finished.given]);
    assert.deepEqual(edge.log, []);
    assert.deepEqual(edge.errors, []);
  });

  it('in the middle of its upload ends the exchange with the service', async () => {
    const gone = createSignal();
    const reached = createSignal();
    const finished = createSignal();
    const upstream = await servers.http((req) => {
      req.on('error', () => gone.give());
      req.once('data', () => reached.give());
    });
    const edge = await startEdge(servers, {
      targets: { hotel: remote(upstream) },
      host: [(_ctx, next) => next().finally(() => finished.give())],
    });
    const leaving = connect(edge.port, '127.0.0.1');
    leaving.write(rawRequest('POST /v1/hotels', ['Content-Length: 10'], 'hello'));
    await reached.given;
    leaving.destroy();
    await Promise.all([gone.given, finished.given]);
    assert.deepEqual(edge.log, []);
  });

  it('in the middle of the answer ends the exchange with the service', async () => {
    const gone = createSignal();
    const upstream = await servers.http((_req, res) => {
      res.once('close', () => gone.give());
      res.write('first');
    });
    const edge = await startEdge(servers, { targets: { hotel: remote(upstream) } });
    const leaving = connect(edge.port, '127.0.0.1');
    leaving.write(rawRequest('GET /v1/hotels'));
    await once(leaving, 'data');
    leaving.destroy();
    await gone.given;
    assert.deepEqual(edge.log, []);
  });

  it('without waiting for its turn ends the exchanges of all that it asked for', async () => {
    const gone = createSignal();
    const reached = createSignal();
    let open = 0;
    const upstream = await servers.http((_req, res) => {
      open += 1;
      res.once('close', () => {
        open -= 1;
        if (open === 0) gone.give();
      });
      res.setHeader('Content-Type', 'text/event-stream');
      res.write('data: 1\n\n');
      if (open === 3) reached.give();
    });
    const edge = await startEdge(servers, { targets: { hotel: remote(upstream) } });
    const leaving = connect(edge.port, '127.0.0.1');
    leaving.write('GET /v1/hotels HTTP/1.1\r\nHost: front.example\r\n\r\n'.repeat(3));
    await reached.given;
    leaving.destroy();
    await gone.given;
    assert.deepEqual(edge.log, []);
  });

  it('before its turn is not asked for at the service', async () => {
    const upstream = await startUpstream(servers);
    const left = createSignal();
    const finished = createSignal();
    const edge = await startEdge(servers, {
      targets: { hotel: remote(upstream) },
      host: [(_ctx, next) => next().finally(() => finished.give())],
      inside: [
        async (ctx, next) => {
          leaving.destroy();
          await once(ctx.res, 'close');
          left.give();
          await next();
        },
      ],
    });
    const leaving = connect(edge.port, '127.0.0.1');
    leaving.write(rawRequest('GET /v1/hotels'));
    await Promise.all([left.given, finished.given]);
    assert.deepEqual(upstream.reached, []);
    assert.deepEqual(edge.log, []);
  });

  function checkHeldBack(what: string, answer: (res: ServerResponse) => void) {
    it(`while a host app holds ${what} back harms nobody`, async () => {
      const upstream = await servers.http((_req, res) => answer(res));
      const finished = createSignal();
      const edge = await startEdge(servers, {
        targets: { hotel: remote(upstream) },
        host: [
          async (ctx, next) => {
            await next();
            if (ctx.status === 404) return;
            leaving.destroy();
            await once(ctx.res, 'close');
            finished.give();
          },
        ],
      });
      const leaving = connect(edge.port, '127.0.0.1');
      leaving.write(rawRequest('GET /v1/hotels'));
      await finished.given;
      await supertest(edge.origin).get('/nowhere').expect(404);
    });
  }

  checkHeldBack('an answer that goes on', (res) => void res.write('first'));
  checkHeldBack('a whole answer', (res) => void res.end('all of it'));
});
