/** Desks in an app on node:http2: every stage works as on node:http, and so does the host's own middleware around it. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { RequestListener } from 'node:http';
import {
  constants,
  createSecureServer,
  createServer,
  type Http2ServerRequest,
  type Http2ServerResponse,
} from 'node:http2';
import { get } from 'node:https';
import { text } from 'node:stream/consumers';
import { Metadata, status } from '@grpc/grpc-js';
import cors from '@koa/cors';
import Koa, { type Middleware } from 'koa';
import mount from 'koa-mount';
import type { FrontdeskOptions } from '../../src/index.ts';
import { annRecord, authRecord, desksOf, limitRecord, mappingRecord } from '../support/desks.ts';
import { testServers } from '../support/serve.ts';
import { temporaryFiles } from '../support/temporary-files.ts';
import { createDeferred, eventually } from '../support/waiting.ts';
import { makeCertificate } from '../support/wire/certificate.ts';
import { echoWebSocket } from '../support/wire/echo-websocket.ts';
import { startConnectClient } from '../support/wire/extended-connect.ts';
import { connectGrpc, startGrpcService, unary } from '../support/wire/grpc-peers.ts';
import { openHttp2 } from '../support/wire/http2-client.ts';
import { startSwitchingUpstream } from '../support/wire/switching-upstream.ts';

const authorization = `Basic ${btoa('ann:secret')}`;
const credentials = { authorization };

type Line = Readonly<Record<string, unknown>>;

describe('a desk in an app on node:http2', () => {
  const servers = testServers();
  const open = desksOf(servers);
  const writeFiles = temporaryFiles();

  interface HostOptions {
    /** The host's middleware before the desk. */
    readonly before?: readonly Middleware[];
    readonly service?: RequestListener;
    readonly options?: FrontdeskOptions;
    readonly mapping?: object;
  }

  async function openHost({ before = [], service = echo, mapping = {}, options = {} }: HostOptions = {}) {
    const lines: Line[] = [];
    const errors: unknown[] = [];
    const upstream = await servers.http(service);
    const info = (fields: object, message?: string) => void (message === 'request' && lines.push({ ...fields }));
    const error = (fields: object, message?: string) => void errors.push({ ...fields, message });
    const desk = await open({
      config: {
        records: [mappingRecord('app', '/v1/app', upstream.origin, mapping), authRecord, limitRecord],
        users: [annRecord],
      },
      demo: false,
      logger: { info, warn() {}, error },
      ...options,
    });
    const app = new Koa().on('error', (fault) => void errors.push(fault));
    for (const one of before) app.use(one);
    app.use(mount('/travel', desk.middleware));
    const { origin } = await servers.listen(createServer(app.callback()));
    const client = openHttp2(origin);
    servers.later(() => client.session.destroy());
    return { ...client, desk, app, origin, lines, errors };
  }

  const doubled: Readonly<Record<string, RequestListener>> = {
    'as a header': (_req, res) => res.setHeader('ETag', ['"a"', '"b"']).end('ok'),
    'as a header of a stream': (_req, res) => void res.setHeader('ETag', ['"a"', '"b"']).flushHeaders(),
    'as a trailer': (_req, res) => {
      res.writeHead(200, { Trailer: 'ETag' });
      res.addTrailers([
        ['ETag', '"a"'],
        ['ETag', '"b"'],
      ]);
      res.end('ok');
    },
  };
  for (const [how, service] of Object.entries(doubled))
    it(`resets a response with two values ${how} where the server of the host allows one, and goes on`, async () => {
      const { send, errors, start } = await openHost({
        mapping: { bypass_auth: true },
        service: (req, res) => (req.url === '/ok' ? echo(req, res) : service(req, res)),
      });
      const { code } = await send({ ':path': '/travel/v1/app/a' });
      assert.equal(code, constants.NGHTTP2_INTERNAL_ERROR);
      await eventually(() =>
        assert.ok(errors.some((error) => Reflect.get(Object(error), 'code') === 'ERR_HTTP2_HEADER_SINGLE_VALUE')),
      );
      const { stream, status } = start({ ':path': '/travel/v1/app/ok' });
      stream.end();
      assert.equal(await status, 200);
    });

  it('forwards a request with a body without length, and its response with trailers', async () => {
    const { send, lines, errors } = await openHost({
      service(req, res) {
        res.writeHead(201, { Trailer: 'X-Sum', 'X-User': String(req.headers['x-travel-user']) });
        req
          .on('data', (chunk) => res.write(chunk))
          .on('end', () => {
            res.addTrailers({ 'X-Sum': '9' });
            res.end();
          });
      },
    });
    const body = 'z'.repeat(300_000);
    const response = await send({ ':method': 'POST', ':path': '/travel/v1/app/a?b=c', ...credentials }, body);
    assert.equal(response.status, 201);
    assert.equal(response.body, body);
    assert.equal(response.headers['x-user'], 'ann');
    assert.deepEqual(response.rawTrailers, ['x-sum', '9']);
    await eventually(() => assert.equal(lines.length, 1));
    const { method, path, protocol, status, user, client } = lines[0] ?? {};
    const expected = { method: 'POST', path: '/travel/v1/app/a', protocol: 'HTTP/2.0', status: 201, user: 'ann' };
    assert.deepEqual({ method, path, protocol, status, user, client }, { ...expected, client: '127.0.0.1' });
    assert.ok(Number(lines[0]?.['bytesIn']) > 300_000 && Number(lines[0]?.['bytesOut']) > 300_000);
    assert.deepEqual(errors, []);
  });

  it('tells the service which host, path and client the request has', async () => {
    const { send } = await openHost();
    const { body } = await send({ ':path': '/travel/v1/app/a', ':authority': 'shop.example', ...credentials });
    const { url, headers } = JSON.parse(body);
    assert.equal(url, '/a');
    assert.equal(headers['x-forwarded-host'], 'shop.example');
    assert.equal(headers['x-forwarded-prefix'], '/travel/v1/app');
    assert.equal(headers['x-forwarded-for'], '127.0.0.1');
    assert.equal(headers['x-forwarded-proto'], 'http');
    assert.deepEqual(
      Object.keys(headers).filter((name) => name.startsWith(':')),
      [],
    );
  });

  it('responds with problems, and without credentials with 401', async () => {
    const { send, errors } = await openHost();
    const refused = await send({ ':path': '/travel/v1/app/' });
    assert.equal(refused.status, 401);
    assert.match(refused.body, /"code":401/);
    assert.match(String(refused.headers['www-authenticate']), /^Basic /);
    assert.equal((await send({ ':path': '/travel/nowhere' })).status, 404);
    assert.deepEqual(errors, []);
  });

  it('rejects two different hosts', async () => {
    const { send } = await openHost();
    const response = await send({ ':path': '/travel/v1/app/', ':authority': 'a.example', host: 'b.example' });
    assert.equal(response.status, 400);
    assert.match(response.body, /differs from the `:authority`/);
  });

  it('sends events as they arrive', async () => {
    const { promise, resolve } = createDeferred();
    const { start } = await openHost({
      async service(_req, res) {
        res.writeHead(200, { 'Content-Type': 'text/event-stream' }).write('data: 1\n\n');
        await promise;
        res.end('data: 2\n\n');
      },
    });
    const { stream, response } = start({ ':path': '/travel/v1/app/events', ...credentials });
    await once(stream, 'data');
    resolve();
    assert.match((await response).body, /data: 2\n\n$/);
  });

  it('aborts the request to the service and logs 499 when the client cancels', async () => {
    const { promise: aborted, resolve } = createDeferred();
    const { start, lines } = await openHost({
      service(_req, res) {
        res.once('close', resolve);
        stream.close(8);
      },
    });
    const { stream } = start({ ':path': '/travel/v1/app/slow', ...credentials });
    await aborted;
    await eventually(() => assert.equal(lines[0]?.['status'], 499));
  });

  it('resets the stream when the service breaks off a response, and logs 502', async () => {
    const { send, lines } = await openHost({
      service(_req, res) {
        res.writeHead(200, { 'Content-Length': '10' }).write('half', () => res.destroy());
      },
    });
    const response = await send({ ':path': '/travel/v1/app/', ...credentials });
    assert.equal(response.status, 200);
    assert.notEqual(response.code, 0);
    await eventually(() => assert.equal(lines[0]?.['status'], 502));
  });

  it('rejects a body that is too large', async () => {
    const { send } = await openHost({ options: { bodyBytesMax: 1000 } });
    const response = await send({ ':method': 'POST', ':path': '/travel/v1/app/', ...credentials }, 'z'.repeat(2000));
    assert.equal(response.status, 413);
  });

  it('keeps the headers that the host has set, and those that it sets afterwards', async () => {
    const around: Middleware = async (ctx, next) => {
      ctx.set('X-Before', 'host');
      ctx.cookies.set('before', '1');
      await next();
      ctx.set('X-After', String(ctx.status));
      ctx.cookies.set('after', '1');
    };
    const { send } = await openHost({ before: [cors({ credentials: true }), around] });
    const { headers } = await send({ ':path': '/travel/v1/app/', origin: 'https://a.example', ...credentials });
    assert.equal(headers['x-before'], 'host');
    assert.equal(headers['x-after'], '200');
    assert.deepEqual(headers['set-cookie'], ['before=1; path=/; httponly', 'after=1; path=/; httponly']);
    assert.equal(headers['access-control-allow-origin'], 'https://a.example');
  });

  it('lets the host change the body afterwards', async () => {
    const upper: Middleware = async (ctx, next) => {
      await next();
      ctx.body = String(ctx.body).toUpperCase();
    };
    const { send } = await openHost({ before: [upper], service: (_req, res) => void res.end('quiet') });
    assert.equal((await send({ ':path': '/travel/v1/app/', ...credentials })).body, 'QUIET');
  });

  it('shows its status to code of the host that listens for the end of the response', async () => {
    const seen: unknown[] = [];
    const logger: Middleware = (ctx, next) => {
      const { res } = ctx;
      res.once('finish', () => void seen.push(['finish', res.statusCode]));
      res.once('close', () => void seen.push(['close', ctx.status]));
      return next();
    };
    const { send } = await openHost({ before: [logger] });
    await send({ ':path': '/travel/v1/app/' });
    await eventually(() => assert.equal(seen.length, 2));
    assert.deepEqual(seen, [
      ['finish', 401],
      ['close', 401],
    ]);
  });

  it('forwards a body that the host has read, if it keeps `rawBody`', async () => {
    const parser: Middleware = async (ctx, next) => {
      Object.assign(ctx.request, { rawBody: await text(ctx.req) });
      await next();
    };
    const { send } = await openHost({ before: [parser] });
    const post = { ':method': 'POST', ':path': '/travel/v1/app/', ...credentials };
    assert.equal(JSON.parse((await send(post, 'kept')).body).body, 'kept');
    assert.equal(JSON.parse((await send({ ':path': '/travel/v1/app/', ...credentials })).body).body, '');
  });

  it('rejects a body that the host has read and thrown away', async () => {
    const reader: Middleware = async (ctx, next) => {
      await text(ctx.req);
      await next();
    };
    const { send } = await openHost({ before: [reader] });
    const response = await send({ ':method': 'POST', ':path': '/travel/v1/app/', ...credentials }, 'lost');
    assert.equal(response.status, 500);
    assert.match(response.body, /"code":500/);
  });

  it('forwards an empty body that has ended while the host was busy', async () => {
    const { promise, resolve } = createDeferred();
    const busy: Middleware = async (_ctx, next) => {
      await promise;
      await next();
    };
    const { start } = await openHost({ before: [busy] });
    const { stream, response } = start({ ':method': 'POST', ':path': '/travel/v1/app/', ...credentials });
    stream.end();
    setImmediate(() => setImmediate(resolve));
    assert.equal(JSON.parse((await response).body).body, '');
  });

  it('does not believe a header that the host has removed', async () => {
    const strip: Middleware = (ctx, next) => {
      delete ctx.req.headers.authorization;
      return next();
    };
    const { send } = await openHost({ before: [strip] });
    assert.equal((await send({ ':path': '/travel/v1/app/', ...credentials })).status, 401);
  });

  it('serves several requests of a connection at once, each with its own end', async () => {
    const { start } = await openHost();
    const paths = Array.from({ length: 50 }, (_, index) => `/${index}`);
    const bodies = await Promise.all(
      paths.map(async (path) => {
        const { stream, response } = start({ ':method': 'PUT', ':path': `/travel/v1/app${path}`, ...credentials });
        stream.end(path);
        return JSON.parse((await response).body);
      }),
    );
    assert.deepEqual(
      bodies.map(({ url, body }) => [url, body]),
      paths.map((path) => [path, path]),
    );
  });

  it('serves its own app, and its pages', async () => {
    const { desk } = await openHost({ options: { landingPage: true } });
    const { origin } = await servers.listen(createServer(desk.app.callback()));
    const { send, session } = openHttp2(origin);
    servers.later(() => session.destroy());
    const { status, body } = await send({ accept: 'text/html' });
    assert.equal(status, 200);
    assert.match(body, /^<!doctype html>/i);
    assert.equal((await send({ ':path': '/v1/app/', ...credentials })).status, 200);
  });

  it('serves HTTP/1.1 beside HTTP/2 over TLS, with the address and the scheme of the client', async function () {
    const pair = await makeCertificate(await writeFiles(), 'IP:127.0.0.1');
    if (pair === undefined) return this.skip();
    const { app, lines } = await openHost();
    const listener = app.callback() as (req: Http2ServerRequest, res: Http2ServerResponse) => void;
    const { port } = await servers.listen(createSecureServer({ allowHTTP1: true, ...pair }, listener));
    const url = `https://127.0.0.1:${port}`;
    const { send, session } = openHttp2(url, { ca: pair.cert });
    servers.later(() => session.destroy());
    const { body } = await send({ ':path': '/travel/v1/app/', ...credentials });
    assert.equal(JSON.parse(body).headers['x-forwarded-proto'], 'https');
    const plain = get(`${url}/travel/v1/app/`, { ca: pair.cert, headers: credentials, agent: false });
    const [response] = await once(plain, 'response');
    assert.equal(JSON.parse(await text(response)).headers['x-forwarded-proto'], 'https');
    await eventually(() => assert.equal(lines.length, 2));
    assert.deepEqual(
      lines.map(({ protocol }) => protocol),
      ['HTTP/2.0', 'HTTP/1.1'],
    );
    assert.match(String(lines[0]?.['tls']), /^TLSv1/);
  });

  it('forwards gRPC calls, and refuses them with a status', async () => {
    const calls = '/shop.Carts/Add';
    const service = await startGrpcService(servers, { [calls]: unary(() => Buffer.from('hi')) });
    const records = [mappingRecord('carts', '/shop.Carts', service.origin, { grpc: true }), authRecord];
    const desk = await open({ config: { records, users: [annRecord] }, demo: false });
    const { port } = await servers.listen(createServer(desk.app.callback()));
    const client = connectGrpc(servers, { port });
    const { code, message } = await client.unary(calls, '', { metadata: Metadata.fromHttp2Headers(credentials) });
    assert.deepEqual([code, String(message)], [status.OK, 'hi']);
    assert.equal((await client.unary(calls)).code, status.UNAUTHENTICATED);
  });

  describe('of which the server has extended CONNECT', () => {
    async function openConnecting() {
      const echoed = await startSwitchingUpstream(servers, echoWebSocket);
      const { app, desk, lines } = await openHost({
        mapping: { allow_upgrade: ['websocket'], service: echoed.origin },
      });
      const server = createServer({ settings: { enableConnectProtocol: true } }, app.callback());
      server.on('connect', desk.upgradesThrough(app.callback()));
      const client = await startConnectClient(servers, (await servers.listen(server)).origin);
      return { ...client, desk, lines, echoed };
    }

    it('opens a WebSocket, and closes it with the desk', async () => {
      const { open: connect, desk, lines, echoed } = await openConnecting();
      const client = connect('/travel/v1/app/room', credentials);
      assert.equal((await client.response)[':status'], 200);
      client.socket.write(Buffer.from([0x82, 0x82, 0, 0, 0, 0, 0x68, 0x69]));
      await client.until('hi');
      assert.equal(echoed.upgrades[0]?.headers['x-travel-user'], 'ann');
      await desk.close({ withinMs: 0 });
      await client.closed;
      assert.equal(client.socket.rstCode, constants.NGHTTP2_CANCEL);
      await eventually(() => assert.equal(lines[0]?.['status'], 101));
    });

    it('responds with 401 without credentials, and with 501 to CONNECT and outside of mappings that switch', async () => {
      const { open: connect, session } = await openConnecting();
      assert.equal((await connect('/travel/v1/app/room').response)[':status'], 401);
      assert.equal((await connect('/travel/gateway/v0/problems/not-found').response)[':status'], 501);
      const plain = session.request({ ':method': 'CONNECT', ':authority': 'elsewhere:443' });
      const [head] = await once(plain, 'response');
      assert.equal(head[':status'], 501);
    });
  });

  it('responds with 503 after it has been closed', async () => {
    const { desk, send } = await openHost();
    await desk.close();
    assert.equal((await send({ ':path': '/travel/v1/app/', ...credentials })).status, 503);
  });
});

/** Responds with what it received, as JSON. */
const echo: RequestListener = async (req, res) => {
  const body = await text(req);
  res.end(JSON.stringify({ method: req.method, url: req.url, headers: req.headers, body }));
};
