/** Forwarding over HTTP: paths, methods, responses and redirects, and clients that disconnect. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request, type ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import supertest from 'supertest';
import type { Mapping } from '#config';
import { requestContext } from '#http';
import { type EdgeOptions, mappingOf, remote, startEdge } from '../support/edge.ts';
import { testServers } from '../support/serve.ts';
import { startUpstream } from '../support/upstream.ts';
import { createDeferred } from '../support/waiting.ts';
import { rawRequest, sendRaw, statusOf } from '../support/wire/raw-client.ts';

const servers = testServers();

describe('a service over HTTP', () => {
  async function setUp(
    respond?: (res: ServerResponse) => void,
    mapping: Partial<Mapping> = {},
    more: EdgeOptions = {},
  ) {
    const upstream = await startUpstream(servers, respond);
    const targets = { hotel: remote(upstream), based: remote(upstream, '/base') };
    const edge = await startEdge(servers, { mapping, targets, ...more });
    return { upstream, edge, client: supertest(edge.origin) };
  }

  function checkPath(mapping: Partial<Mapping>, requested: string, expected: string) {
    it(`receives ${expected} when the client requests ${requested} (${JSON.stringify(mapping)})`, async () => {
      const { upstream, edge } = await setUp(undefined, mapping);
      await sendRaw(edge.port, rawRequest(`GET ${requested}`));
      assert.equal(upstream.only().url, expected);
    });
  }

  checkPath({}, '/v1/hotels/bookings/1?a=1&b=%20&a=2', '/bookings/1?a=1&b=%20&a=2');
  checkPath({}, '/v1/hotels?', '/?');
  checkPath({ service: 'based' }, '/v1/hotels/x?', '/base/x?');
  checkPath({}, '/v1/hotels/a%2Fb?u=//evil.example', '/a%2Fb?u=//evil.example');
  checkPath({ service: 'based' }, '/v1/hotels/x', '/base/x');
  checkPath({ service: 'based', rewrite: '' }, '/v1/hotels', '/base/v1/hotels');
  checkPath({ prefix: '/', rewrite: '' }, 'http://evil.example/x?y', '/x?y');

  it('receives every method except TRACE, which would echo credentials', async () => {
    const { upstream, edge } = await setUp();
    const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'HEAD', 'PROPFIND'];
    for (const method of methods)
      assert.equal(statusOf(await sendRaw(edge.port, rawRequest(`${method} /v1/hotels`))), 200);
    const refused = await sendRaw(edge.port, rawRequest('TRACE /v1/hotels'));
    assert.match(refused, /^HTTP\/1\.1 405 [\s\S]*\r\nAllow: GET, HEAD, /);
    assert.deepEqual(
      upstream.reached.map(({ method }) => method),
      methods,
    );
  });

  function checkResponse(what: string, respond: (res: ServerResponse) => void, expected: string, method = 'GET') {
    it(`has its response forwarded: ${what}`, async () => {
      const { edge } = await setUp(respond);
      const received = await sendRaw(edge.port, rawRequest(`${method} /v1/hotels`));
      const own = /^(?:x-request-id|x-content-type-options|date|connection|via):/i;
      const lines = received.split('\r\n').filter((line) => !own.test(line));
      assert.equal(lines.join('\n').toLowerCase(), expected);
    });
  }

  const chunkedOk = (res: ServerResponse) => {
    res.write('o');
    res.end('k');
  };
  checkResponse('an empty body', (res) => res.end(), 'http/1.1 200 ok\ncontent-length: 0\n\n');
  checkResponse('a short chunked body, with its length', chunkedOk, 'http/1.1 200 ok\ncontent-length: 2\n\nok');
  checkResponse('204', (res) => res.writeHead(204, { ETag: '"1"' }).end(), 'http/1.1 204 no content\netag: "1"\n\n');
  checkResponse('304', (res) => res.writeHead(304, { ETag: '"1"' }).end(), 'http/1.1 304 not modified\netag: "1"\n\n');
  checkResponse(
    'an error',
    (res) => res.writeHead(404, { 'Content-Type': 'text/odd', 'Content-Length': '4' }).end('gone'),
    'http/1.1 404 not found\ncontent-type: text/odd\ncontent-length: 4\n\ngone',
  );
  checkResponse(
    'a server error',
    (res) => res.writeHead(500, { 'Content-Length': '2' }).end('oh'),
    'http/1.1 500 internal server error\ncontent-length: 2\n\noh',
  );
  checkResponse(
    'only the headers for HEAD',
    (res) => res.writeHead(200, { 'Content-Length': '5', 'Content-Type': 'a/b' }).end(),
    'http/1.1 200 ok\ncontent-length: 5\ncontent-type: a/b\n\n',
    'HEAD',
  );
  checkResponse('an error for HEAD', (res) => res.writeHead(404).end(), 'http/1.1 404 not found\n\n', 'HEAD');

  function checkLocation(location: (host?: string) => string, expected: string, mapping: Partial<Mapping> = {}) {
    it(`redirects the client to ${expected} for Location: ${location('<its Host>')} (${JSON.stringify(mapping)})`, async () => {
      const { client } = await setUp(
        (res) => res.writeHead(308, { Location: location(res.req.headers.host) }).end(),
        mapping,
      );
      const { headers } = await client.get('/v1/hotels/old').expect(308);
      assert.equal(headers['location']?.replace(/^http:\/\/127\.0\.0\.1:\d+/, 'http://front.example'), expected);
    });
  }

  checkLocation(() => '/bookings/?limit=1', '/v1/hotels/bookings/?limit=1');
  checkLocation((host) => `http://${host}/base/new`, 'http://front.example/v1/hotels/base/new');
  checkLocation((host) => `http://${host}/base/new`, 'http://front.example/v1/hotels/new', { service: 'based' });
  checkLocation((host) => `http://${host}/new`, '/v1/hotels/new', { hostRewrite: '{service}' });
  checkLocation((host) => `http://${host}/new`, '/v1/hotels/new', { hostRewrite: 'inner.example' });

  it('receives the full public prefix from a mounted gateway, which also rewrites its redirects', async () => {
    const unmount: EdgeOptions['host'] = [
      async (ctx, next) => {
        ctx.path = ctx.path.slice('/travel'.length);
        await next();
      },
    ];
    const redirect = (res: ServerResponse) => res.writeHead(302, { Location: '/x' }).end();
    const { client, upstream } = await setUp(redirect, {}, { host: unmount });
    await client.get('/travel/v1/hotels').expect('Location', '/travel/v1/hotels/x');
    assert.equal(upstream.only().headers['x-forwarded-prefix'], '/travel/v1/hotels');
  });

  it('streams in both directions: each side receives the start of a body before its end is sent', async () => {
    const heard: Buffer[] = [];
    const upstream = await servers.http((req, res) => {
      req.once('data', () => res.write('heard '));
      req.on('data', (chunk) => heard.push(chunk));
      req.on('end', () => res.end('done'));
    });
    const edge = await startEdge(servers, { upstream });
    const sending = request(`${edge.origin}/v1/hotels`, { method: 'POST' });
    sending.write('first');
    const [response] = await once(sending, 'response');
    const [chunk] = await once(response, 'data');
    assert.equal(String(chunk), 'heard ');
    assert.equal(response.headers['transfer-encoding'], 'chunked');
    assert.equal(String(Buffer.concat(heard)), 'first');
    sending.end('second');
    assert.equal(await text(response), 'done');
    assert.equal(String(Buffer.concat(heard)), 'firstsecond');
  });

  it('may respond before the request is complete, after which the connection of the client closes', async () => {
    const upstream = await servers.http((_req, res) => {
      res.writeHead(409, { Connection: 'close' }).end('enough');
    });
    const edge = await startEdge(servers, { upstream });
    const socket = connect(edge.port, '127.0.0.1').setEncoding('latin1');
    socket.write('POST /v1/hotels HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhello');
    assert.match(await text(socket), /^HTTP\/1\.1 409 Conflict\r\n[\s\S]*\r\nConnection: close\r\n[\s\S]*enough/i);
  });

  it('has its address and its response time recorded, even when it fails', async () => {
    const seen: unknown[] = [];
    const [upstream, refusing] = [await startUpstream(servers), await servers.refusing()];
    const edge = await startEdge(servers, {
      mappings: [mappingOf(), mappingOf({ name: 'car', prefix: '/v1/cars', service: 'car' })],
      targets: { hotel: remote(upstream), car: remote(refusing) },
      host: [
        (ctx, next) =>
          next().then(() => {
            const { upstream, upstreamMs } = requestContext(ctx);
            seen.push([upstream, typeof upstreamMs]);
          }),
      ],
    });
    await supertest(edge.origin).get('/v1/hotels').expect(200);
    await supertest(edge.origin).get('/v1/cars').expect(503);
    assert.deepEqual(seen, [
      [upstream.origin, 'number'],
      [refusing.origin, 'number'],
    ]);
  });
});

describe('a client that disconnects', () => {
  /** Sends `bytes`, then disconnects when the service calls `leave` or, with `onData`, when the response begins. */
  function check(
    when: string,
    bytes: string,
    serve: (res: ServerResponse, hooks: { leave: () => void; gone: () => void }) => void,
    { onData = false } = {},
  ) {
    it(`${when} aborts its requests to the service, and no failure is logged`, async () => {
      const [gone, leave] = [createDeferred(), createDeferred()];
      let running = 0;
      const finished = createDeferred();
      const upstream = await servers.http((_req, res) => serve(res, { leave: leave.resolve, gone: gone.resolve }));
      const edge = await startEdge(servers, {
        upstream,
        host: [
          (_ctx, next) => {
            running += 1;
            return next().finally(() => --running === 0 && finished.resolve());
          },
        ],
      });
      const leaving = connect(edge.port, '127.0.0.1');
      leaving.write(bytes);
      await (onData ? once(leaving, 'data') : leave.promise);
      leaving.destroy();
      await Promise.all([gone.promise, finished.promise]);
      assert.deepEqual(edge.log, []);
      if (when === 'before the response') assert.deepEqual(edge.errors, []);
    });
  }

  const get = rawRequest('GET /v1/hotels');
  check('before the response', get, ({ req }, { leave, gone }) => {
    req.socket.once('close', gone);
    leave();
  });
  check(
    'during its upload',
    rawRequest('POST /v1/hotels', ['Content-Length: 10'], 'hello'),
    ({ req }, { leave, gone }) => {
      req.on('error', gone);
      req.once('data', leave);
    },
  );
  check(
    'during the response',
    get,
    (res, { gone }) => {
      res.once('close', gone);
      res.write('first');
    },
    { onData: true },
  );
  const open = new Set<ServerResponse>();
  check('with pipelined requests', get.replace('close', 'keep-alive').repeat(3), (res, { leave, gone }) => {
    open.add(res);
    res.once('close', () => open.delete(res) && open.size === 0 && gone());
    res.setHeader('Content-Type', 'text/event-stream');
    res.write('data: 1\n\n');
    if (open.size === 3) leave();
  });

  it('before its request is forwarded causes no request to the service', async () => {
    const upstream = await startUpstream(servers);
    const finished = createDeferred();
    const edge = await startEdge(servers, {
      upstream,
      host: [(_ctx, next) => next().finally(finished.resolve)],
      inside: [
        async (ctx, next) => {
          leaving.destroy();
          await once(ctx.res, 'close');
          await next();
        },
      ],
    });
    const leaving = connect(edge.port, '127.0.0.1');
    leaving.write(get);
    await finished.promise;
    assert.deepEqual(upstream.reached, []);
    assert.deepEqual(edge.log, []);
  });

  for (const [what, respond] of [
    ['an unfinished response', (res: ServerResponse) => void res.write('first')],
    ['a complete response', (res: ServerResponse) => void res.end('all of it')],
  ] as const)
    it(`while a host app delays ${what} does not affect the next client`, async () => {
      const upstream = await servers.http((_req, res) => respond(res));
      const finished = createDeferred();
      let leaving: Socket | undefined;
      const edge = await startEdge(servers, {
        upstream,
        host: [
          async (ctx, next) => {
            await next();
            if (ctx.status === 404) return;
            leaving?.destroy();
            await once(ctx.res, 'close');
            finished.resolve();
          },
        ],
      });
      leaving = connect(edge.port, '127.0.0.1');
      leaving.write(get);
      await finished.promise;
      await supertest(edge.origin).get('/nowhere').expect(404);
    });
});
