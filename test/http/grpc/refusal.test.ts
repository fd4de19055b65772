/** Problems in answer to gRPC calls: one response of headers alone, with a status of gRPC. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { OutgoingHttpHeaders } from 'node:http';
import {
  type ClientHttp2Session,
  connect as connectHttp2,
  constants,
  type IncomingHttpHeaders,
  type IncomingHttpStatusHeader,
} from 'node:http2';
import Koa, { type Middleware } from 'koa';
import request from 'supertest';
import {
  countedStatus,
  createAccessLog,
  createAddresses,
  createProblemResponses,
  createRequestContext,
  finalStatus,
  type HttpServerOptions,
  problem,
  requestContext,
} from '#http';
import { testServers } from '../../support/serve.ts';
import { startHttp } from '../../support/wire/http-server.ts';
import { rawRequest, sendRaw } from '../../support/wire/raw-client.ts';

const silent = { info() {}, warn() {}, error() {} };

describe('a problem in answer to a gRPC call', () => {
  const servers = testServers();

  function throwing(thrown: unknown, ...outside: readonly Middleware[]) {
    const app = new Koa();
    const ours = [createRequestContext(createAddresses()), ...outside, createProblemResponses({ logger: silent })];
    for (const one of ours) app.use(one);
    app.use(() => {
      throw thrown;
    });
    return app.callback();
  }

  async function refuse(thrown: unknown, contentType = 'application/grpc') {
    const sent = request(throwing(thrown))
      .post('/shop.Carts/Add')
      .set({ 'Content-Type': contentType, Accept: 'text/html' });
    const { headers, status, text = '' } = await sent.send(Buffer.from('\0\0\0\0\0'));
    return { headers: headers as Readonly<Record<string, string>>, status, text };
  }

  it('is a 200 of headers alone, with the status, the title and the detail', async () => {
    const { status, headers, text } = await refuse(problem('not-found', { detail: 'There is no cart 7 für 5 %.' }));
    assert.deepEqual([status, text, headers['content-type']], [200, '', 'application/grpc']);
    assert.equal(headers['grpc-status'], '12');
    assert.equal(headers['grpc-message'], 'Not found: There is no cart 7 f%C3%BCr 5 %25.');
    assert.match(headers['x-request-id'] ?? '', /./);
    assert.equal(headers['vary'], undefined);
  });

  it('has the same status line and no bytes of a body in HTTP/1.1', async () => {
    const { port } = await servers.http(throwing(problem('unauthorized')));
    const head = ['Content-Type: application/grpc', 'Content-Length: 0'];
    const response = await sendRaw(port, rawRequest('POST /shop.Carts/Add', head));
    assert.match(response, /^HTTP\/1\.1 200 OK\r\n/);
    assert.match(response, /\r\n\r\n$/);
  });

  describe('over HTTP/2', () => {
    async function connectTo(options: Partial<HttpServerOptions>) {
      const { port } = await startHttp(servers, { http2: true, ...options });
      const session = connectHttp2(`http://127.0.0.1:${port}`);
      servers.later(() => session.destroy());
      return session;
    }

    /** Returns the only frame of headers, and whether it ends the stream. */
    async function headersFor(session: ClientHttp2Session, fields: OutgoingHttpHeaders = {}, isOpen = false) {
      const call = { ':method': 'POST', ':path': '/shop.Carts/Add', 'content-type': 'application/grpc', ...fields };
      const stream = session.request(call, { endStream: false });
      if (isOpen) stream.write('\0\0');
      else stream.end('\0\0\0\0\0');
      const [headers, flags] = (await once(stream, 'response')) as [
        IncomingHttpHeaders & IncomingHttpStatusHeader,
        number,
      ];
      stream.on('data', () => assert.fail('the response has a body'));
      stream.resume();
      await once(stream, 'close');
      return { headers, isEnd: (flags & constants.NGHTTP2_FLAG_END_STREAM) !== 0 };
    }

    async function check(
      options: Partial<HttpServerOptions>,
      grpcStatus: string,
      ...rest: [OutgoingHttpHeaders?, boolean?]
    ) {
      const { headers, isEnd } = await headersFor(await connectTo(options), ...rest);
      assert.deepEqual([headers[':status'], headers['grpc-status'], isEnd], [200, grpcStatus, true]);
      assert.equal(headers['content-type'], 'application/grpc');
      assert.equal(headers['content-length'], undefined);
      return headers;
    }

    it('is one frame of headers that ends the stream', async () => {
      const headers = await check(
        { handler: throwing(problem('too-many-requests', { headers: { 'Retry-After': '7' } })) },
        '8',
      );
      assert.equal(headers['grpc-retry-pushback-ms'], '7000');
    });

    it('is one although the client has not sent the whole message', async () => {
      await check({ handler: throwing(problem('unauthorized')) }, '16', {}, true);
    });

    it('is one for a call that is rejected before it is served', async () => {
      const headers = await check({}, '3', { ':authority': 'one.example', host: 'other.example' });
      assert.match(String(headers['grpc-message']), /^Bad request: The Host header differs/);
    });

    it('is one for a message that does not arrive in time', async () => {
      await check({ requestTimeoutMs: 50, handler() {} }, '4', {}, true);
    });
  });

  it('has the meaning of the problem as its message if there is no detail', async () => {
    const { headers } = await refuse(problem('too-many-requests'));
    assert.equal(headers['grpc-message'], 'Too many requests: A rate limit is exhausted.');
  });

  it('has the reason phrase of a status that another party has chosen', async () => {
    const { headers } = await refuse(problem('access-denied', { status: 404 }));
    assert.deepEqual([headers['grpc-status'], headers['grpc-message']], ['12', 'Not Found']);
  });

  it('keeps the headers of the problem, and tells clients that repeat calls when', async () => {
    const headers = { 'Retry-After': '7', 'WWW-Authenticate': 'Basic realm="x"', 'Set-Cookie': ['a=1', 'b=2'] };
    const refused = await refuse(problem('too-many-requests', { headers }));
    assert.equal(refused.headers['retry-after'], '7');
    assert.equal(refused.headers['grpc-retry-pushback-ms'], '7000');
    assert.equal(refused.headers['www-authenticate'], 'Basic realm="x"');
    assert.deepEqual(refused.headers['set-cookie'], ['a=1', 'b=2']);
    const late = await refuse(problem('too-many-requests', { headers: { 'Retry-After': '9999999' } }));
    assert.equal(late.headers['grpc-retry-pushback-ms'], '2147483647');
    const dated = await refuse(
      problem('upstream-unavailable', { headers: { 'Retry-After': new Date(0).toUTCString() } }),
    );
    assert.equal(dated.headers['grpc-retry-pushback-ms'], undefined);
  });

  it('does not show what went wrong inside', async () => {
    const { headers } = await refuse(new Error('the password is wrong'));
    assert.equal(headers['grpc-status'], '13');
    assert.doesNotMatch(JSON.stringify(headers), /password/);
  });

  it('becomes INTERNAL if its headers cannot be sent', async () => {
    const { headers, status } = await refuse(problem('not-found', { headers: { 'X-Bad': 'a\nb' } }));
    assert.deepEqual([status, headers['grpc-status']], [200, '13']);
  });

  for (const type of ['application/grpc+proto', 'application/grpc-web', 'application/grpc-web-text+proto'])
    it(`has the content type of a call with ${type}`, async () => {
      const { headers, status } = await refuse(problem('access-denied'), `${type}; charset=utf-8`);
      assert.deepEqual([status, headers['content-type'], headers['grpc-status']], [200, type, '7']);
    });

  it('is an ordinary problem for any other request', async () => {
    assert.equal((await refuse(problem('not-found'), 'application/json')).status, 404);
    const get = request(throwing(problem('not-found')))
      .get('/')
      .set('Content-Type', 'application/grpc');
    assert.equal((await get).status, 404);
  });

  /** Resolves to the fields of the only line of the access log, which is written after the response. */
  async function lineOf(thrown: unknown, ...inside: readonly Middleware[]): Promise<Readonly<Record<string, unknown>>> {
    return new Promise((resolve, reject) => {
      const log = createAccessLog({ ...silent, info: (fields) => resolve({ ...fields }) });
      const sent = request(throwing(thrown, log, ...inside))
        .post('/')
        .set('Content-Type', 'application/grpc');
      sent.expect(200).catch(reject);
    });
  }

  it('is logged with the status of the response and that of gRPC, and counted as the status of the problem', async () => {
    const counted: number[] = [];
    const watch: Middleware = (ctx, next) => {
      ctx.res.prependListener('close', () => counted.push(finalStatus(ctx.res), countedStatus(ctx.res)));
      return next();
    };
    const { status, grpcStatus, problem: slug } = await lineOf(problem('upstream-timeout'), watch);
    assert.deepEqual([status, grpcStatus, slug], [200, 'DEADLINE_EXCEEDED', 'upstream-timeout']);
    assert.deepEqual(counted, [200, 504]);
  });

  it('is logged with a number if a service has sent a status without a name', async () => {
    const setStatus: Middleware = (ctx, next) => {
      ctx.res.prependListener('close', () => {
        requestContext(ctx).grpcStatus = 77;
      });
      return next();
    };
    assert.equal((await lineOf(problem('not-found'), setStatus))['grpcStatus'], '77');
  });
});
