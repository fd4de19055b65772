/** The request context: ids, clients that disconnect early, the base path of nested mounts, and the trace. */
import assert from 'node:assert/strict';
import { createServer, type IncomingMessage, type RequestListener } from 'node:http';
import { connect } from 'node:net';
import Koa, { type Middleware } from 'koa';
import mount from 'koa-mount';
import request from 'supertest';
import {
  createAddresses,
  createRequestContext,
  createSafePath,
  formatLifecycle,
  parseLifecycle,
  publicBase,
  requestContext,
  traceOf,
} from '#http';
import { testServers } from '../support/serve.ts';
import { createDeferred } from '../support/waiting.ts';
import { bodyOf, rawRequest, sendRaw } from '../support/wire/raw-client.ts';

function appOf(...middleware: readonly Middleware[]): Koa {
  const app = new Koa();
  for (const one of middleware) app.use(one);
  return app;
}

const sendBase: Middleware = (ctx) => {
  ctx.body = { basePath: requestContext(ctx).basePath, publicBase: publicBase(ctx) };
};

const openContext = () => createRequestContext(createAddresses());

const servers = testServers();

describe('createRequestContext', () => {
  const handler = appOf(openContext(), (ctx) => {
    ctx.body = requestContext(ctx).requestId;
  }).callback();

  it('keeps a valid X-Request-Id, in the response and for the app', async () => {
    for (const id of ['0b6f1c52-7d7e-4a57-9d43-5f0f6c1d2a01', 'a.b_c-1', 'x'.repeat(128)])
      await request(handler).get('/').set('X-Request-Id', id).expect('X-Request-Id', id).expect(200, id);
  });

  it('trusts no proxy by default', async () => {
    const app = appOf(createRequestContext(), sendBase).callback();
    await request(app)
      .get('/')
      .set({ Host: 'desk.test', 'X-Forwarded-Host': 'evil.test', 'X-Forwarded-Prefix': '/evil' })
      .expect(200, { basePath: '', publicBase: 'http://desk.test' });
  });

  it('replaces an invalid X-Request-Id', async () => {
    for (const id of ['', 'x'.repeat(129), 'a b', 'a"b', 'a, b', '<script>']) {
      const { headers, text } = await request(handler).get('/').set('X-Request-Id', id).expect(200);
      assert.match(text, /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/);
      assert.equal(headers['x-request-id'], text);
    }
  });

  it('drops requests whose client disconnected while the host application was busy', async () => {
    const waiting = 3;
    const [disconnected, allArrived, allEnded] = [createDeferred(), createDeferred(), createDeferred()];
    let arrived = 0;
    let ended = 0;
    let passedOn = 0;
    const host = appOf(
      async (_ctx, next) => {
        arrived += 1;
        if (arrived === waiting) allArrived.resolve();
        await disconnected.promise;
        await next();
        ended += 1;
        if (ended === waiting) allEnded.resolve();
      },
      openContext(),
      () => {
        passedOn += 1;
      },
    );
    const server = createServer(host.callback());
    const { port } = await servers.listen(server);
    server.once('connection', (peer) => peer.once('close', () => setImmediate(disconnected.resolve)));
    const socket = connect(port, '127.0.0.1');
    socket.write('GET / HTTP/1.1\r\nHost: desk.test\r\n\r\n'.repeat(waiting));
    await allArrived.promise;
    socket.destroy();
    await allEnded.promise;
    assert.deepEqual([ended, passedOn], [waiting, 0]);
  });
});

describe('requestContext', () => {
  it('works without createRequestContext and then trusts no proxy', async () => {
    await request(appOf(sendBase).callback())
      .get('/')
      .set('Host', 'desk.test')
      .set('X-Forwarded-Host', 'evil.example')
      .expect(200, { basePath: '', publicBase: 'http://desk.test' });
  });
});

describe('basePath', () => {
  async function check(handler: RequestListener, expected: string, ...targets: readonly string[]) {
    const { port } = await servers.http(handler);
    for (const target of targets) {
      const response = await sendRaw(port, rawRequest(`GET ${target}`));
      assert.match(response, /^HTTP\/1\.1 200 /);
      assert.equal(JSON.parse(bodyOf(response)).basePath, expected, target);
    }
  }

  it('is empty when nothing is mounted', async () => {
    const handler = appOf(openContext(), createSafePath(), sendBase).callback();
    const absolute = ['http://evil.example/x', 'http://[/x'];
    await check(handler, '', '/', '/v1/hotels/?a=/b', '/%61/b', ...absolute);
  });

  it('is the prefix that nested koa-mounts stripped', async () => {
    const handler = appOf(mount('/travel', appOf(mount('/eu', appOf(openContext(), sendBase))))).callback();
    const targets = ['/travel/eu/v1/x?y=1', '/travel/eu/', '/travel/eu', '/travel/eu//evil.example/x'];
    const rejected = ['/travel/eu/x/..%2fy', '/travel/eu/%2e%2e/x', '/travel/eu//evil.example/%00', '/travel/eu/%'];
    await check(handler, '/travel/eu', ...targets, ...rejected, 'http://desk.test/travel/eu/x');
  });

  it('is the prefix that a connect-style host stripped from req.originalUrl', async () => {
    const ours = appOf(openContext(), createSafePath(), sendBase).callback();
    const host: RequestListener = (req: IncomingMessage & { originalUrl?: string }, res) => {
      req.originalUrl = req.url ?? '';
      req.url = req.originalUrl.slice('/api'.length);
      if (!req.url.startsWith('/')) req.url = `/${req.url}`;
      ours(req, res);
    };
    await check(host, '/api', '/api/v1/x?y=/v1/x', '/api/', '/api', '/api?y');
  });

  it('is correct for a context that opens after the path was sanitised', async () => {
    const app = appOf(createSafePath(), sendBase);
    await check(app.callback(), '', '/%61/x');
    await check(appOf(mount('/v1', app)).callback(), '/v1', '/v1/%61/x');
  });

  it('begins with the prefix that a trusted proxy stripped', async () => {
    const trusting = createRequestContext(createAddresses({ trustedProxies: ['127.0.0.0/8', '::1'] }));
    await request(appOf(mount('/v1', appOf(trusting, sendBase))).callback())
      .get('/v1/x')
      .set({ Host: 'desk.test', 'X-Forwarded-Prefix': '/travel', 'X-Forwarded-Proto': 'https' })
      .expect(200, { basePath: '/travel/v1', publicBase: 'https://desk.test/travel/v1' });
  });
});

describe('traceOf', () => {
  it('works without createRequestContext', async () => {
    const app = new Koa();
    app.use((ctx) => {
      ctx.body = { one: traceOf(ctx).spanId, other: traceOf(ctx).spanId };
    });
    const { body } = await request(app.callback()).get('/').expect(200);
    assert.match(body.one, /^[\da-f]{16}$/);
    assert.equal(body.one, body.other);
  });
});

describe('what a gateway announces about a version', () => {
  const [deprecatedAtMs, endsAtMs] = [Date.UTC(2026, 5, 30), Date.UTC(2027, 5, 30)];

  it('is the same after it was passed on in a header', () => {
    for (const lifecycle of [
      { deprecatedAtMs, endsAtMs, successor: '/v2/' },
      { deprecatedAtMs, endsAtMs: undefined, successor: 'https://v2.test/;sunset=@1' },
      { deprecatedAtMs: undefined, endsAtMs, successor: undefined },
    ])
      assert.deepEqual(parseLifecycle(formatLifecycle(lifecycle)), {
        ...lifecycle,
        isDeprecated: lifecycle.deprecatedAtMs !== undefined,
      });
  });

  it('is read from older gateways, and without a successor that is no link', () => {
    const none = { deprecatedAtMs: undefined, endsAtMs: undefined, successor: undefined };
    assert.deepEqual(parseLifecycle('?1'), { ...none, isDeprecated: true });
    assert.deepEqual(parseLifecycle('?1;successor="javascript:alert(1)"'), { ...none, isDeprecated: true });
  });
});
