import assert from 'node:assert/strict';
import type { IncomingMessage, RequestListener } from 'node:http';
import Koa, { type Middleware } from 'koa';
import mount from 'koa-mount';
import request from 'supertest';
import { createAddresses, createRequestContext, createSafePath, publicBase, requestContext, traceOf } from '#http';
import { createSignal } from '../support/waiting.ts';
import { bodyOf, withServer } from './raw-exchange.ts';

function appOf(...middleware: readonly Middleware[]): Koa {
  const app = new Koa();
  for (const one of middleware) app.use(one);
  return app;
}

const answerBase: Middleware = (ctx) => {
  ctx.body = { basePath: requestContext(ctx).basePath, publicBase: publicBase(ctx) };
};

const opened = () => createRequestContext(createAddresses());

describe('createRequestContext', () => {
  const handler = appOf(opened(), (ctx) => {
    ctx.body = requestContext(ctx).requestId;
  }).callback();

  it('keeps a valid X-Request-Id, in the response and for the app', async () => {
    for (const id of ['0b6f1c52-7d7e-4a57-9d43-5f0f6c1d2a01', 'a.b_c-1', 'x'.repeat(128)])
      await request(handler).get('/').set('X-Request-Id', id).expect('X-Request-Id', id).expect(200, id);
  });

  it('trusts no proxy without addresses', async () => {
    const app = appOf(createRequestContext(), answerBase).callback();
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

  it('does not pass on requests whose client disconnected while a host before it was slow', async () => {
    const waiting = 3;
    const [left, all, over] = [createSignal(), createSignal(), createSignal()];
    let asked = 0;
    let ended = 0;
    let begun = 0;
    const host = appOf(
      async (_ctx, next) => {
        asked += 1;
        if (asked === waiting) all.give();
        await left.given;
        await next();
        ended += 1;
        if (ended === waiting) over.give();
      },
      opened(),
      () => {
        begun += 1;
      },
    );
    await withServer({ handler: host.callback() }, async ({ server, open }) => {
      server.once('connection', (socket) => socket.once('close', () => setImmediate(left.give)));
      const leaving = open();
      leaving.write('GET / HTTP/1.1\r\nHost: desk.test\r\n\r\n'.repeat(waiting));
      await all.given;
      leaving.destroy();
      await over.given;
    });
    assert.deepEqual([ended, begun], [waiting, 0]);
  });
});

describe('requestContext', () => {
  it('serves an app that runs without createRequestContext, and then trusts no proxy', async () => {
    await request(appOf(answerBase).callback())
      .get('/')
      .set('Host', 'desk.test')
      .set('X-Forwarded-Host', 'evil.example')
      .expect(200, { basePath: '', publicBase: 'http://desk.test' });
  });
});

describe('the base path', () => {
  async function check(handler: RequestListener, expected: string, ...targets: readonly string[]) {
    await withServer({ handler }, async ({ send }) => {
      for (const target of targets) {
        const response = await send(`GET ${target} HTTP/1.1\r\nHost: desk.test\r\nConnection: close\r\n\r\n`);
        assert.match(response, /^HTTP\/1\.1 200 /);
        assert.equal(JSON.parse(bodyOf(response)).basePath, expected, target);
      }
    });
  }

  it('is empty when nothing is mounted', async () => {
    const handler = appOf(opened(), createSafePath(), answerBase).callback();
    const absolute = ['http://evil.example/x', 'http://[/x'];
    await check(handler, '', '/', '/v1/hotels/?a=/b', '/%61/b', ...absolute);
  });

  it('is the prefix that nested koa-mounts removed', async () => {
    const handler = appOf(mount('/travel', appOf(mount('/eu', appOf(opened(), answerBase))))).callback();
    const targets = ['/travel/eu/v1/x?y=1', '/travel/eu/', '/travel/eu', '/travel/eu//evil.example/x'];
    const refused = ['/travel/eu/x/..%2fy', '/travel/eu/%2e%2e/x', '/travel/eu//evil.example/%00', '/travel/eu/%'];
    await check(handler, '/travel/eu', ...targets, ...refused, 'http://desk.test/travel/eu/x');
  });

  it('is the prefix that a connect-style host removed from req.url, according to req.originalUrl', async () => {
    const ours = appOf(opened(), createSafePath(), answerBase).callback();
    const host: RequestListener = (req: IncomingMessage & { originalUrl?: string }, res) => {
      req.originalUrl = req.url ?? '';
      req.url = req.originalUrl.slice('/api'.length);
      if (!req.url.startsWith('/')) req.url = `/${req.url}`;
      ours(req, res);
    };
    await check(host, '/api', '/api/v1/x?y=/v1/x', '/api/', '/api', '/api?y');
  });

  it('is also found by a context that opens after the path was sanitised', async () => {
    const app = appOf(createSafePath(), answerBase);
    await check(app.callback(), '', '/%61/x');
    await check(appOf(mount('/v1', app)).callback(), '/v1', '/v1/%61/x');
  });

  it('begins with the prefix that a trusted proxy removed', async () => {
    const trusting = createRequestContext(createAddresses({ trustedProxies: ['127.0.0.0/8', '::1'] }));
    await request(appOf(mount('/v1', appOf(trusting, answerBase))).callback())
      .get('/v1/x')
      .set({ Host: 'desk.test', 'X-Forwarded-Prefix': '/travel', 'X-Forwarded-Proto': 'https' })
      .expect(200, { basePath: '/travel/v1', publicBase: 'https://desk.test/travel/v1' });
  });
});

describe('the trace of a request', () => {
  it('exists for an app that runs without createRequestContext', async () => {
    const app = new Koa();
    app.use((ctx) => {
      ctx.body = { one: traceOf(ctx).spanId, other: traceOf(ctx).spanId };
    });
    const { body } = await request(app.callback()).get('/').expect(200);
    assert.match(body.one, /^[\da-f]{16}$/);
    assert.equal(body.one, body.other);
  });
});
